"""What MPI functions do, as far as it decides who can wait for whom."""

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels

Mask = NDArray[np.bool_]

# No rank leaves before all have entered.
TO_ALL = frozenset(
    {
        *("barrier", "allreduce", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"),
        *("reduce_scatter", "reduce_scatter_block"),
    }
)
BARRIERS = frozenset({"barrier"})
# Nobody but the root leaves before the root has entered; the root not before all have.
FROM_ROOT = frozenset({"bcast", "scatter", "scatterv"})
TO_ROOT = frozenset({"reduce", "gather", "gatherv"})
COLLECTIVE = TO_ALL | FROM_ROOT | TO_ROOT | {"scan", "exscan"}
# With these a rank may have nothing for another one, and then need not wait for it.
UNEVEN = frozenset(
    {"allgatherv", "alltoallv", "alltoallw", "reduce_scatter", "scatterv", "gatherv"}
)
EXCHANGES = frozenset({"sendrecv", "sendrecv_replace"})
BLOCKING_SENDS = frozenset({"send", "ssend", "rsend"})
SENDS = BLOCKING_SENDS | EXCHANGES | {"bsend", "isend", "issend", "ibsend", "irsend"}
PENDING_RECEIVES = frozenset({"irecv"})
RECEIVES = PENDING_RECEIVES | EXCHANGES | {"recv"}
WAITS = frozenset({"wait", "waitall"})
STARTS = frozenset({"init", "init_thread"})
# After these there are communicators of other members than the world's.
DIVISIONS = frozenset(
    {
        *("comm_split", "comm_split_type", "comm_create", "comm_create_group", "cart_create"),
        *("cart_sub", "graph_create", "dist_graph_create", "dist_graph_create_adjacent"),
        *("intercomm_create", "intercomm_merge"),
    }
)
KNOWN = DIVISIONS | COLLECTIVE | SENDS | RECEIVES | WAITS | STARTS


def plain_name(name: str) -> str:
    """MPI_Allreduce, PMPI_Allreduce_c and mpi_allreduce_ are allreduce."""
    lower = name.lower().removeprefix("p").removeprefix("mpi_").rstrip("_")
    return lower.removesuffix("_c")


def is_one_of(names: Labels, functions: frozenset[str]) -> Mask:
    """Mask of the calls of some functions."""
    return names.where(lambda name: plain_name(name) in functions)
