"""`python -m parley.demo`: serve until Ctrl-C."""

import sys

from parley.demo.server import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
