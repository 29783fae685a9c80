"""A local HTTP server that speaks the providers' wire formats, for trying Parley and for its tests.

It knows the formats, their refusals and a few simple rules for answers; it knows nothing of
transcripts, settings or Neovim. Only `server` does IO, and nothing is imported before it is needed.
"""
