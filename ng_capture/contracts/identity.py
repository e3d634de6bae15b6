"""Ids that a contract wants and the source does not have: of what they name, never of the clock or of chance."""

import hashlib

from ng_capture.records.json_text import encode_json

_DIGITS = 24


def content_digest(value: object) -> str:
    """The digest of a JSON value in canonical form: keys in order, no spaces."""
    return hashlib.sha256(encode_json(_ordered(value))).hexdigest()


def made_id(prefix: str, *named: object) -> str:
    """An id made of what it names (contracts.md 3.6): same input, same id."""
    return f"{prefix}{content_digest(list(named))[:_DIGITS]}"


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(member) for member in value] if isinstance(value, list | tuple) else value
