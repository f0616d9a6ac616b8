"""From nsys to ncu and back: what to measure, and what the answer is worth."""
