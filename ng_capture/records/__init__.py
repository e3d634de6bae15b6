"""Bytes -> frozen, versioned records, or a defect. Pure: no I/O, no clock, no globals."""
