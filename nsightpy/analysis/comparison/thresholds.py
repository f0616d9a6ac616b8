"""The named numbers of comparisons, each with its unit and its reason."""

# Runs a side: below four no p-value can fall below 0.05; more than a thousand nobody makes.
FEWEST_RUNS, MOST_RUNS = 4, 1_000
# Draws of the bootstrap: its bounds are then known to a hundredth of the interval's width.
DRAWS = 2_000
# What chance may do at most: p-values, intervals of 95 %, the floor of noise.
LEVEL = 0.05
# Shares: launches in a unit may differ by so much between runs of one program; so may steps in a
# capture, and of the change of the unit so much is worth a command.
SAME_LAUNCHES, MATERIAL = 0.02, 0.1
# Units, evenly chosen, in which works are looked at one by one; works of which that is kept, and
# ranges.
MOST_SAMPLES, MOST_SAMPLED = 64, 200
