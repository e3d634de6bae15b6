"""ATOF: what a runtime tells of its scopes while they run, and the conversations in it (contracts.md 2)."""
