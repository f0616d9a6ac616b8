"""Memory: copies, and what was allocated."""
