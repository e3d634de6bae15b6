"""The contracts around a rollout: one reader and one writer each, around one episode; every loss is data."""
