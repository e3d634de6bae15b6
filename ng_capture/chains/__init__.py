"""How calls extend one another: duplicates, deltas, parents, retries, terminal, chains. Pure."""
