"""Gym's protocol on disk: read a snapshot, append records, freeze (seal) and retire a rollout."""
