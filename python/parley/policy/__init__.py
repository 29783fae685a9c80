"""Decides the next step from the transcript, settings, tools and ledger. Pure."""
