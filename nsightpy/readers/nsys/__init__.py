"""Tables of an export as frames."""
