"""Decides the next step from transcript, settings, tools and ledger. Pure."""
