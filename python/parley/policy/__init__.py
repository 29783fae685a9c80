"""What happens next: decided from transcript, settings, tools and ledger. Pure; does nothing."""
