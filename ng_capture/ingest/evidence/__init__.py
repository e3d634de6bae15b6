"""What a response says of its tokens: every engine's spelling read, compared and judged (ingest.md 1 and 4)."""
