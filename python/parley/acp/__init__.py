"""Other programs' agents over the Agent Client Protocol: their processes, sessions and requests."""
