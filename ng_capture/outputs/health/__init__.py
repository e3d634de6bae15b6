"""The health of a run: where it is read from, the document, and the formats that it is told in."""
