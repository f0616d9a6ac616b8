"""compare: runs before against runs after."""
