"""The terminal: parses, calls the library, renders."""
