"""What a question is about: scope, time window, ranges, steady state, one clock."""
