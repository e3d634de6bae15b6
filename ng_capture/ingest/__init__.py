"""Raw calls of any engine -> what the rest of the library understands: token fields, messages, lineage."""
