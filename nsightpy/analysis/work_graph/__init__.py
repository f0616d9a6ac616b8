"""The work of all ranks as one graph: why devices were idle, and what a change would be worth."""
