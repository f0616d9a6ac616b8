"""Every number that decides what iterations are: its unit, and why it is that.

"Programs" are the 17 exports and 17 traces that verdicts were made for, and the programs of
tests/analysis/test_iteration_programs.py and test_kinds_of_programs.py.
"""

# Turns: fewer than three show one distance between them, which may be chance.
REPEATS = 3
# Turns: of fewer the usual spread is unknown, and work that is left out may be more than chance.
FEW = 8

# Launches: what is looked at for the order; 0.3 s of search. Steps of 10,000 launches repeat 20
# times in it.
LOOKED_AT = 200_000
# Lengths of the runs of launches that may mark a turn: longer ones tell layers from one another;
# the longest that are worth their time.
GRAMS = (1, 4, 16)
# Levels that are looked into, most regular first (programs have up to 12), and units whose kernels
# are compared (a share is known to a tenth then).
LOOKED_INTO = 24

# Different kernels: no layer has as many (unfused ones have 25, with their backward pass 40), and
# none without attention (three convolutions, normalised and activated, have 9).
DIFFERENT, DIFFERENT_ALONE = 45, 12
# Parts of a step: sweeps, stages, micro-batches, networks are two to four; solvers check every
# fifth iteration or later.
MOST_PARTS = 4
# Ratio of the longest to the shortest, a tenth of each apart: steps that grow (decoding) reach 3,
# sizes of a benchmark begin at 8.
UNLIKE = 4.0

# Share by which a first iteration is longer than nearly all later ones: clocks and caches vary by
# 1 %, the first of settled programs by less than 2 %.
SLOWER = 0.02
# Part of the later iterations that are nearly all of them: one of twenty may be slow.
USUALLY = 0.95
# Share of the iterations: where more of them (and more than three) are longer at first, the run
# never settles and has no warm-up.
WARMING = 0.25
# Iterations that stand out: share of the median and median deviations above it. 5 % is what people
# look into; 4.45 are three standard deviations of a normal distribution, which one of 700 passes.
SLOW_SHARE, SLOW_DEVIATIONS = 0.05, 4.45
# Levels, and slow iterations of a device, that are listed for people.
LISTED, MOST_SLOW = 6, 3
