"""A local HTTP server that speaks the providers' wire formats, to try out and to test Parley.

The server knows the formats and a table of questions and replies, but nothing about transcripts,
settings or Neovim. Only `server` does I/O, and modules are imported only when needed.
"""

PACE_HEADER = "x-parley-pace"
"""A request with this header receives its reply at the given pace: the seconds between two
pieces.
"""
