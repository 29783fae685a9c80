"""`python -m parley.demo`: serve until Ctrl-C."""

import os
import sys

_PACKAGES = os.path.abspath(os.path.join(__file__, "../../.."))  # noqa: PTH100, PTH118 - no pathlib yet

# With -m, Python first searches the working directory, which may not be trustworthy. Some modules
# are imported already; before the rest are imported, this entry is removed, unless Parley itself is
# there.
if not sys.flags.safe_path and os.path.abspath(sys.path[0]) != _PACKAGES:  # noqa: PTH100
    del sys.path[0]

from parley.demo.server import main  # noqa: E402 - not before that

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
