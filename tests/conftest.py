"""What holds for all tests."""

import examples  # noqa: F401  the laws of all folders are tried as it says
