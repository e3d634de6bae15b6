"""Names, bytes and locks of capture files; knows no JSON meaning."""
