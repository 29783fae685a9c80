"""Replies as each API puts them on the wire: `whole(reply, body)` and `stream(reply, body)` per format.

Pure: frames are strings. Who sends them, how fast and to whom is the server's affair.
"""
