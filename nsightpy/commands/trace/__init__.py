"""trace: every operation in time order, as nsys stats lists it."""
