"""The named numbers of what ranks cost each other, each with its unit and its reason."""

# Collectives. An abnormal one is longer than the median of its kind by so many deviations and by
# this factor; fewer instances show no usual time.
DEVIATIONS = 8.0
LEAST_RATIO = 2.0
LEAST_USUAL = 8
# So many of one length, within this share of it, are a size of their own.
OF_ONE_SIZE, ALIKE = 5, 0.1

# Stragglers. One is last in most of the collectives of its peers, and works longest on most of the
# work before them, this many deviations beyond what the unluckiest of all ranks reaches by chance.
MOSTLY_LAST = 0.7
BEYOND_CHANCE = 1.5
# It costs the others at least this share of the time observed; more in a pipeline, where there are
# few collectives of peers to prove it.
MATERIAL, MATERIAL_IN_PIPELINES = 0.002, 0.01
# It waits itself for less than this part of what it costs.
WAITS_LESS = 0.5
# Collectives: one that is late in fewer is late once.
LEAST_LATE = 4
# Nanoseconds: arrivals, and ends of work, within this are one, as those of collectives that were
# queued behind another are.
TOGETHER_NS = 2_000
# The part of the collectives, from the first on, that may be warm-up.
WARM_UP = 1 / 3
# Who is slowest now tends to be slowest next time as well, but not more than this.
FEW, MOST_ALIKE = 1.5, 0.98
# A single late arrival is noted when it costs this share of the time observed; so many are single.
LATE_ONCE, ONCE = 0.01, 3

# Kernels. Ranks whose kernel counts, as shares, differ by more than this (sum of differences / 2)
# do different work.
DIFFERENT = 0.05
# Another amount of the same work: its factor is beyond the first, and all kernels but a tenth have
# it within the second.
SAME_AMOUNT, SAME_FACTOR, FEW_KERNELS = 1.1, 0.2, 0.1

# Links. Bytes: smaller operations are bound by latency, whatever the link (the knee in sweeps of
# nccl-tests).
LARGE_BYTES = 16 << 20
# Of what the link carries: below this part it is slow. NCCL reaches four fifths of it and more.
SLOW_SHARE = 1 / 3
