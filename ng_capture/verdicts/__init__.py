"""Findings, the registry of reasons, policies, judging. Pure."""
