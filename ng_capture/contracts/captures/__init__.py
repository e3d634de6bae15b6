"""Captures as contracts: raw exchanges, token records, tables of calls, the evaluation view (contracts.md 3.5, 5)."""
