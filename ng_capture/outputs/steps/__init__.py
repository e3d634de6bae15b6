"""Raw calls as evidence: NeMo Gym's model-call records, their turns and totals (capture-files.md 7)."""
