"""export: every frame of every report in files that other programs read."""
