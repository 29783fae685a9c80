"""`python -m parley`: the command line."""

import sys

from parley.cli import main

if __name__ == "__main__":
    sys.exit(main())
