"""The named numbers of choosing kernels for ncu and of comparing what it measured."""

# What is chosen unasked: this share of the GPU time, in no more runs than people start.
COVERAGE = 0.8
MOST_CHOSEN = 25
# A kernel with more geometries than this is one row for each power of two of its threads: nobody
# measures thousands of shapes of one kernel one by one.
MOST_SHAPES = 20
# Beyond this ratio the durations of two tools are not of the same thing. Clocks that differ by the
# second explain it; beyond the third something else does, too.
APART, CLOCKS_APART, UNEXPLAINED = 1.5, 1.1, 1.2
