"""The named numbers of groups and of the common clock, each with its unit, reason and population.

Population, unless another one is named: simulated jobs of 2 to 64 ranks whose truth is known
(scripts/simulator/collective_logs.py, benchmarks/clock_alignment.py), ends with 0.5 us of jitter.
"""

# --- Times of ends ---

# ns: ends of one collective agree to about 1 us within a host (captures on RTX 3090); ends so far
# apart count half, and arrivals within it are one.
TIGHT_NS = 2_000
# ns: ends farther apart are not of one collective (within a host 1 us, between two nodes 0.1 ms
# before clocks are corrected: definitions, alignment of ranks); nor is a clock known better then.
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

# --- How many, and what share ---

# Collectives: fewer show nothing; so many show what is beyond doubt if they mostly agree.
LEAST_SHARED, PLENTY = 4, 24
# Times: lanes of one group are not so many times as long as each other.
UNLIKE = 3
# Ends of a lane that are looked at to find its group; ends in a row that are unlike any others, and
# instances of a communicator that the fit looks at: more would show nothing new.
SAMPLE, ENOUGH = 64, 1_000
# Offsets that are looked at closely; pairs of clocks after which two sets seem to share nothing.
TRIES = 8

# --- What is beyond chance ---

# Standard deviations from which jitter counts by its size: 4 % less precise than least squares
# where jitter is bell-shaped (Huber).
HUBER = 1.5
# Standard errors: of 250 to 400 clocks without drift one is given one by chance; ends that differ
# by more (of standard deviations) are not of one group.
SIGNIFICANT = 3.2
# Median deviations: a slope that rises by more is one.
SLOPE = 8.0
# ns per ns: a drift is known to be none where one of 1 ppm would have been detected.
SMALL_DRIFT = 1e-6
# Share of a misfit, for one collective: groups in lockstep explain their ends so much better than
# others, and less so by the root of how many there are.
BEYOND_CHANCE = 0.7
