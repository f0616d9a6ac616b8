"""Many ranks: their collectives side by side, one clock, and who waits for whom."""
