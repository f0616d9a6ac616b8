"""The named numbers of what a picture of a timeline has space for."""

# Rows beyond which each is one stacked band; levels of NVTX ranges above the streams of a row.
MOST_UNSTACKED = 8
RANGE_LEVELS = 3
# Columns that an event covers to be drawn on its own.
WIDE_COLUMNS = 3
