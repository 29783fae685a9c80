"""The next step: decided from transcript, settings, tools and ledger. Pure; does nothing."""
