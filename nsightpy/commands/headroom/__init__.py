"""headroom: what ncu measured, joined to the time that nsys saw."""
