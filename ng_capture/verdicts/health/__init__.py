"""What many verdicts say together: metrics, gates, and what an unexpected value usually means."""
