"""The release: makes all published files from the last commit, and refuses the release if a file is
wrong.

Not part of the package. `make release VERSION=…` runs it; CONTRIBUTING.md ("Releasing") explains it.
"""
