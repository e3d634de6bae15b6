"""Readers of the logs that people already have: each turns files into raw exchanges (ingest.md 2)."""
