"""The named numbers of groups and of the common clock, each with its unit, reason and population.

Population, unless another one is named: simulated jobs of 2 to 64 ranks whose truth is known
(scripts/simulator/collective_logs.py, benchmarks/clock_alignment.py), ends with 0.5 us of jitter.
"""

# --- Times of ends ---

# ns: ends of one collective agree to about 1 us within a host (captures on RTX 3090); ends so far
# apart count half.
TIGHT_NS = 2_000.0
# ns: ends farther apart are not of one collective (within a host 1 us, between two nodes 0.1 ms
# before clocks are corrected: definitions, alignment of ranks).
REACH_NS = 60_000
# ns: differences of ends are counted in stretches of this length: jitter and drift do not part
# them, and chance brings few together.
VOTE_NS = 16_000
# ns: clocks are first looked for within what NTP leaves (1 to tens of ms), then anywhere.
FAR_NS = 200_000_000
# ns per ns: what clocks of computers gain on each other at most.
MOST_DRIFT = 50e-6
# ns: no end is known better than the ticks of its clock.
LEAST_JITTER_NS = 20.0
# ns: a host's reports whose wall and system clocks disagree by more belong to different boots.
SAME_BOOT_NS = 1_000_000_000
# ns: errors of a clock's middle end beyond which the wall clock, or a host's own, is kept.
FAR_ERROR_NS, NEAR_ERROR_NS = 100_000.0, 5_000.0

# --- How many, and what share ---

# Collectives: fewer show nothing; so many show what is beyond doubt if nearly all agree.
LEAST_SHARED, PLENTY = 4, 24
# Shares: of a lane's collectives its partner has this one or more; nearly all.
LEAST_SHARE, NEARLY_ALL = 0.5, 0.8
# Times: streams of one group are not so many times as long as each other.
UNLIKE = 3
# Ends in a row that are unlike any others; those of a lane that are looked at to find its group.
BLOCK, SAMPLE = 400, 64
# Instances of a communicator that the fit looks at: more would show nothing new.
ENOUGH = 1_000
# Offsets that are looked at closely; pairs of clocks after which two sets seem to share nothing.
TRIES = 8
# Pieces of a long capture, so that what lasts shows.
PIECES = 4

# --- What is beyond chance ---

# Standard errors: of 250 to 400 clocks without drift one is given one by chance.
SIGNIFICANT = 3.2
# Standard errors: a clock that differs by more does not drift as its host does; ends that differ by
# more (of standard deviations) are not of one group.
APART = 4.0
# ns per ns: a drift is known to be none where one of 1 ppm would have been detected.
SMALL_DRIFT = 1e-6
# Share of a misfit, for one collective: groups in lockstep explain their ends so much better than
# others, and less so by the root of how many there are.
BEYOND_CHANCE = 0.7
