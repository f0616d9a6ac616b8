"""From nsys to ncu and back: what `select` and `headroom` are made of."""
