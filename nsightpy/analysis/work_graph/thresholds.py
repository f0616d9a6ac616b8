"""The named numbers of the work graph, each with its unit and its reason."""

# Calls: a thread that made so many in a row, while another made none, worked for that one, as
# autograd's does; a loader's that makes one or two in between does not.
LEAST_RUN = 8
# Threads of which more changes than this share happen inside a call work beside each other.
MOST_OVERLAPS = 0.05
# Nanoseconds: eager frameworks issue a kernel every 10 to 300 us; a thread that stays outside of
# CUDA for longer at once does something else (the line between launch-bound and host-gap of
# the definitions: "gaps below about 1 ms").
HOST_GAP_NS = 1_000_000
# Nanoseconds: a thread that waited for another one (a barrier, a join) is woken 10 to 100 us after
# it, and later on a machine whose cores are busy; the longer, the more often one that has nothing
# to do with it is taken for one that waited (programs).
TOGETHER_NS = 200_000
# Nanoseconds: an operation begins 1 to 5 us after what it depends on (V100 to H100); one that
# begins so soon after another's end, and has no other reason, waited for that.
SOON_NS = 10_000
# Operations: what the queue of a stream holds (1,024, of which some the driver needs; 1,020 in a
# capture on A100); who launches another one waits until one begins.
QUEUE_LENGTH = 1_000
# Operations of all ranks that a replay looks at: a tenth of a second a replay in plain Python.
MOST_OPERATIONS = 100_000
# Stretches of consecutive iterations: several show a job that changes, few lose little at their
# begins, where the host's lead over the device is taken as it was.
MOST_BLOCKS = 4
# Stretches that do not follow each other, as instances of a range: each is read by itself.
MOST_APART = 16
# Shares of the time beyond which a gain would be a guess.
MOST_IDENTITY_ERROR = 0.02
MOST_UNEXPLAINED = 0.10
# Nodes at one moment that follow each other: work without length is rare; who waits for each other
# never ends.
MOST_TIED = 64
# Nanoseconds: what a collective takes at most that moves next to nothing (nccl-tests: 8 to 20 us
# within a node).
MOST_LATENCY_NS = 20_000
# Nanoseconds: a call of an API takes some microseconds, and as long until what it launched begins;
# a call that takes this long is worth a name, a delay of this length has another reason.
LONG_CALL_NS = 100_000
# Shares of an interval, for people: a call that names it, and what is worth a word.
LEAST_CALL = 0.25
LEAST_PART = 0.05
# CPU samples: fewer tell nothing.
LEAST_SAMPLES = 5
