"""The release: makes all published files from the last commit, and refuses if one is not right.

Not part of the package. `make release VERSION=…` runs it; CONTRIBUTING.md ("Releasing") explains it.
"""
