"""ATIF, the Agent Trajectory Interchange Format: checked and read from v1.0 to v1.8, written as v1.7 or v1.8."""
