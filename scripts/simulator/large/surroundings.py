"""Everything of an export that is not an event: who, where, when, with what."""

from __future__ import annotations

from dataclasses import dataclass

from simulator import Export, Process

RANKS_PER_NODE = 4
NODE_SKEW_NS = 137_000
JOB_START_UTC_NS = 1_780_000_000_000_000_000
JOB_START_SYSTEM_NS = 4_000_000_000_000
COMMUNICATOR = 13429301450432826988
JOINED_NS = 10_000_000


@dataclass(frozen=True)
class Identity:
    """Which process a report is of, and when its clock starts on the job's."""

    rank: int
    world_size: int
    pid: int
    clock_offset: int

    @property
    def process(self) -> Process:
        return Process(self.pid)

    @property
    def node(self) -> int:
        return self.rank // RANKS_PER_NODE

    @property
    def local(self) -> int:
        return self.rank % RANKS_PER_NODE

    def tid(self, device: int) -> int:
        """The thread that launches on a device."""
        return self.pid + device


def surroundings(identity: Identity, devices: int) -> Export:
    """A report without its events; ranks of a node share a clock, nodes differ a little."""
    world = identity.world_size
    keys = {"RANK": identity.rank, "LOCAL_RANK": identity.local, "WORLD_SIZE": world}
    export = Export(
        "",
        hostname=f"node{identity.node}",
        utc_epoch_ns=JOB_START_UTC_NS + identity.clock_offset + identity.node * NODE_SKEW_NS,
        system_clock_ns=JOB_START_SYSTEM_NS + identity.clock_offset + identity.node * 10**12,
        environment={name: str(value) for name, value in keys.items()},
    )
    export.process(identity.pid)
    domain = export.nvtx_domain("NCCL", start=JOINED_NS)
    for device in range(devices):
        tid, gpu = identity.tid(device), identity.local * devices + device
        export.thread_name(f"device {device}" if device else "python", tid)
        export.gpu(gpu, cuDevice=device)
        export.cuda_device(gpu, device)
        payload: dict[str, object] = {
            "NCCL communicator ID": COMMUNICATOR,
            "No. of ranks": world * devices,
            "Rank": identity.rank * devices + device,
            "CUDA device": device,
        }
        export.nvtx_push_pop(
            JOINED_NS,
            JOINED_NS + 200_000_000,
            "ncclCommInitRankConfig",
            tid,
            domain=domain,
            registered=True,
            payload=payload,
        )
    return export
