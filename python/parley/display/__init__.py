"""What a person reads of a chat beside its text, in the editor and in a terminal: words, rows and lines."""
