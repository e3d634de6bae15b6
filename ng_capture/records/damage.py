"""What kind of damage makes a line no JSON (reasons.md, Lines and files)."""

from ng_capture.records.defects import Defect


def kind_of_damage(defect: Defect, data: bytes) -> Defect:
    """A damaged line as what it is: zero bytes, or cut, since it has no line break; other defects as they are."""
    if defect.reason != "damaged_line":
        return defect
    if b"\0" in data:
        return defect.at(reason="nul_bytes", count=data.count(b"\0"))
    return defect if data.endswith(b"\n") else defect.at(reason="torn_tail")


def opens_a_document(data: bytes) -> bool:
    """True if a first line is the start of one JSON text that goes on over the lines, or of one array of records."""
    return data.strip() == b"{" or data.lstrip().startswith(b"[")
