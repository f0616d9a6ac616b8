"""Tables and screens for a terminal."""
