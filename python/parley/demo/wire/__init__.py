"""Replies as each API sends them: `whole(reply, body)` and `stream(reply, body)` for each format.

Pure: frames are strings. The server decides the pace and the recipient.
"""
