"""The output of nccl-tests, as its all_reduce_perf prints it."""

_HEAD = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 67108864 step: 8(factor) warmup iters: 5 iters: 20
#
# Using devices
"""
_DEVICE = "#  Rank {0:2} Group  0 Pid   68{0:02} on   node-{1} device  {0} [0x07] NVIDIA H100\n"
_TABLE = """\
#
#                                                              out-of-place            in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   \
algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  \
(GB/s)  (GB/s)
           8             2     float     sum      -1    32.31  900.00  900.00      0    25.35   \
 0.01    0.00      0
    67108864      16777216     float     sum      -1   1568.3   {0}    {0}      0   1560.9   \
{0}    1.00    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : {0}
"""


def nccl_tests(hosts: str = "aa", busbw: str = "21.40") -> str:
    """What a run over one rank on each host prints, 64 MiB at a bus bandwidth in GB/s."""
    devices = "".join(_DEVICE.format(rank, host) for rank, host in enumerate(hosts))
    return _HEAD + devices + _TABLE.format(busbw)
