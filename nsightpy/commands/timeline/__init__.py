"""timeline: what every rank and device did, on one clock."""
