"""Text about a chat, for display in the editor and in a terminal: words, rows and lines."""
