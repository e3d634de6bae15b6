"""The three dialects of model calls: requests and responses to turns, and back (contracts.md 4)."""
