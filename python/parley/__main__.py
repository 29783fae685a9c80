"""`python -m parley`: the command line."""

import os
import sys

_PACKAGES = os.path.abspath(os.path.join(__file__, "../.."))  # noqa: PTH100, PTH118 - no pathlib yet

# With -m, Python searches the working directory first, and a stranger may have written its files.
# So far, Python has imported only its own modules: remove the directory unless it contains Parley.
if not sys.flags.safe_path and os.path.abspath(sys.path[0]) != _PACKAGES:  # noqa: PTH100
    del sys.path[0]

from parley.cli import main  # noqa: E402 - after the removal

if __name__ == "__main__":
    sys.exit(main())
