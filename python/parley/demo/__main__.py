"""`python -m parley.demo`: serve until Ctrl-C."""

import os
import sys

_PACKAGES = os.path.abspath(os.path.join(__file__, "../../.."))  # noqa: PTH100, PTH118 - no pathlib yet

# With -m, Python looks first in the folder one is in, which may be anybody's. What it imported up to here
# it had imported anyway; for the rest, that folder is left out, unless Parley itself is there.
if not sys.flags.safe_path and os.path.abspath(sys.path[0]) != _PACKAGES:  # noqa: PTH100
    del sys.path[0]

from parley.demo.server import main  # noqa: E402 - not before that

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
