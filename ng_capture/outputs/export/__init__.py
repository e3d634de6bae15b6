"""Training rows in the formats of trainers (policies-and-exports.md 2)."""
