"""The named numbers of what ranks cost each other, each with its unit and its reason."""

# Collectives. An abnormal one is longer than the median of its kind by so many deviations and by
# this factor; fewer instances show no usual time.
DEVIATIONS = 8.0
LEAST_RATIO = 2.0
LEAST_USUAL = 8

# Stragglers. One is last in this share of the collectives of its peers, and works longest on as
# much of the work before them.
MOSTLY_LAST = 0.7
# Deviations beyond what the unluckiest of all ranks reaches by chance.
BEYOND_CHANCE = 1.5

# Kernels. Ranks whose kernel counts, as shares, differ by more than this (sum of differences / 2)
# do different work.
DIFFERENT = 0.05
# Another amount of the same work: its factor is beyond this, and nearly all kernels have about it.
SAME_AMOUNT = 1.1
# Launches: quartiles of fewer say nothing.
LEAST_LAUNCHES = 5

# Links. Bytes: smaller operations are bound by latency, whatever the link (the knee in sweeps of
# nccl-tests).
LARGE_BYTES = 16 << 20
# Of what the link carries: below this part it is slow. NCCL reaches four fifths of it and more.
SLOW_SHARE = 1 / 3
