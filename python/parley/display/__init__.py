"""Text shown about a chat, in the editor and in a terminal: words, rows and lines."""
