"""Parley's own file and command tools: the folder that they work in, and their MCP server.

Knows files and tools as values, but neither chats nor approvals nor the editor.
"""
