"""Gym's protocol on disk: read a snapshot, freeze (seal) a rollout."""
