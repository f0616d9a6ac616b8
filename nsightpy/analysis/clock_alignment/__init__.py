"""One clock for all ranks: what reports say of theirs, and what collectives add."""
