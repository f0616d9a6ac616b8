"""memory-usage: where memory was allocated, and when."""
