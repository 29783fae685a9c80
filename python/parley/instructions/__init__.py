"""Texts that a user or a project has written for models: prompts and skills. Pure.

Knows the files' formats; `storage` finds and reads the files, and knows which ones are trusted.
"""
