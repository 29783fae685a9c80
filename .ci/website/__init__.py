"""Makes the documentation site from the pages of the repository. It writes no text of its own,
except names of pages and pictures.
"""
