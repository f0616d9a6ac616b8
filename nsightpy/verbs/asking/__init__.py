"""What a question is about: reports, ranks, devices, a range, a stretch of time, steady state."""
