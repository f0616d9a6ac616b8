"""The named number that all analyses share."""

# Of a time or of the work: what is less is not shown, or not used.
MATERIAL = 0.01
