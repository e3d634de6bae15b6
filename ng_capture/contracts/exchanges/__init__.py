"""Requests and responses of Chat Completions and Messages as documents, and chat messages for SFT (contracts.md 4)."""
