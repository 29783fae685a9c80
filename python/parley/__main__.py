"""`python -m parley`: the command line."""

import os
import sys

_PACKAGES = os.path.abspath(os.path.join(__file__, "../.."))  # noqa: PTH100, PTH118 - no pathlib yet

# With -m, Python first searches the working directory, which may belong to a stranger. Python has
# already imported its own modules by now; remove that folder, unless Parley itself is in it.
if not sys.flags.safe_path and os.path.abspath(sys.path[0]) != _PACKAGES:  # noqa: PTH100
    del sys.path[0]

from parley.cli import main  # noqa: E402 - only after the removal

if __name__ == "__main__":
    sys.exit(main())
