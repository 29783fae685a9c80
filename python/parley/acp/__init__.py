"""Agents of other programs over the Agent Client Protocol: their processes, sessions and requests."""
