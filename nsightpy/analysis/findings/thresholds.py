"""The named numbers of findings, each with its unit, its reason and what it was chosen on.

Populations: "captures" are 17 real exports of Nsight Systems of 2021 to 2026 (V100 to H200, RTX,
GTX; training, inference, solvers), judged one by one with SQL, and 20 real PyTorch traces;
"programs" are the simulated ones of the tests, whose causes are known.
"""

# What is said at all, and how loudly.

# Share of a window: an expert's "should" begins here (captures: what was left out below it).
WARNING_SHARE = 0.03
# Share of a window: an expert's "must" begins here (captures: usually from there on).
MUST_SHARE = 0.10
# Share of a kernel's time that its mending usually gives back, where no replay tells: tensor cores
# or a full GPU instead of a part of one more than halve it (captures), fusing and tuning less.
LIKELY_SAVED, PERHAPS_SAVED = 0.5, 0.25

# Start-up.

# Share of the time since a process's first call that a device worked: a moment after a start-up.
SHORT_SHARE = 0.2
# Nanoseconds: what takes less, where no calls tell how long the start-up was, is a moment; no
# start-up takes less than some milliseconds.
MOMENT_NS = 1_000_000
# Share of the kernels' work that is done when a start-up, or a one-off copy, is over.
BEGUN = 0.1
# Nanoseconds: a first call that takes this long makes the context (captures: 70 to 250 ms).
CONTEXT_NS = 10_000_000

# Kernels.

# Nanoseconds: about what launching a kernel takes on the host (captures: 3 to 10 us).
SHORT_NS = 10_000
# Launches: nobody makes a graph of fewer (captures: 3 to 6 kernels of a program that tries a GPU).
FEW_LAUNCHES = 10
# Operations: fewer copies, short kernels, or collectives of an iteration cost nothing that is worth
# a change of code (captures: buckets of 25 MB make some tens of a model, one for each tensor 404).
MANY = 100
# Share of a window, of the kernels' work, or of what a straggler costs: what decides how long it
# takes (captures: 25 to 97 %).
DOMINANT_SHARE = 0.25
# Names: one of so few kernels dominates whatever it does.
FEW_NAMES = 2
# Share of the kernels' work in elementwise steps: eager models have 25 to 40 %, compiled 5 to 15 %.
ELEMENTWISE_SHARE = 0.20
# Launches: an attention that is written out has a scaling, a mask and a cast between its products.
NEAR = 6
# Share of the multiprocessors: persistent kernels begin nearly as many blocks as there are.
SMALL_GRID = 0.8
# Ratio of two times that are about as long: of devices with the same work (programs), or of the
# same kernel with LATENCY_BLOCKS times as many blocks, which then the latency of one block bounds
# and not the work (captures: 62 us for 1, 64 for 120).
ALIKE, LATENCY_BLOCKS = 1.25, 4
# Nanoseconds: a collective that takes less moves next to nothing (nccl-tests: 8 to 20 us).
SHORT_COLLECTIVE_NS = 50_000

# Ranks, devices and health.

# Share of a window that a busy device is busy (verdicts of experts: 95 to 100 %).
HEALTHY_SHARE = 0.95
# Share of a GPU's memory: what is left does not hold the workspace of a larger batch.
NEAR_CAPACITY = 0.9
