"""verifiers: rows of evaluations, and episodes of traces, whose messages are a tree (contracts.md 6)."""
