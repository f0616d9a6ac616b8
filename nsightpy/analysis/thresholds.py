"""The named numbers that several analyses share, and those of modes."""

from math import log2

# Of a time or of the work: what is less is not shown, or not used. Less than the spread of a step
# time from run to run (captures: 0.5 to 2 %).
MATERIAL = 0.01
# Shares (1 is all), the same wherever such a word is meant: round numbers between which the
# results for all programs of the tests do not change.
MOST = 0.5
MOSTLY = 0.8
NEARLY_ALL = 0.9
ABOUT = 0.2
CLOSE = 0.1

# --- Modes of durations ---

# Of the lower of the peaks beside it: a valley no higher divides modes.
DEEP = 0.5
# Standard deviations of how many values fall into a valley by chance: it must be deeper by these.
DEVIATIONS = 2.0
# Octaves: modes differ by 10 % at least; the smoothing is 3 % wide or more, as finer steps are
# those of the timer.
APART, NARROWEST = log2(1.1), log2(1.03)
# What a mode holds at least: of all values, and in number.
LEAST_SHARE, FEWEST = 0.02, 5
