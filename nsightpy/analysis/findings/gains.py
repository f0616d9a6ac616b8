"""What mending a finding is worth: the work of all ranks replayed without its cause."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from nsightpy.analysis.work_graph import replay
from nsightpy.analysis.work_graph.graph import WorkGraph
from nsightpy.analysis.work_graph.host_chain import MODULE
from nsightpy.analysis.work_graph.launched_work import COMPUTE
from nsightpy.analysis.work_graph.replay import Edit
from nsightpy.analysis.work_graph.thresholds import LONG_CALL_NS
from nsightpy.errors import UsageError
from nsightpy.results import Finding


@dataclass(frozen=True)
class Replayable:
    """The graph of the work of all ranks.

    What it gains is `scale` times of what is looked at: one iteration of the steady ones, or all of
    a `window`. `units` are those of the graph by rank and device.
    """

    graph: WorkGraph
    window: str
    scale: float
    units: Mapping[tuple[int | None, int], int]

    def gain(self, changes: Sequence[Edit]) -> tuple[int, float] | None:
        """What some changes are worth together, in ns and as a share; None: nothing was changed."""
        if not any(len(change.rows) for change in changes):
            return None
        result = replay.replay(self.graph, changes)
        return max(round(result.gain_ns * self.scale), 0), max(result.gain_share, 0.0)


def straggler(finding: Finding, work: Replayable) -> list[Edit]:
    """A rank's kernels take what those of the others do."""
    unit = work.units.get((finding.rank, finding.device or 0))
    return [] if unit is None else replay.like_peers(work.graph, unit)


def first_launches(finding: Finding, work: Replayable) -> list[Edit]:
    """Long calls that load code, or launch first, take no time; none where most is compiled."""
    launched, chain = work.graph.work, work.graph.work.chain
    first, length = chain.kind == MODULE, chain.end - chain.start
    first[launched.launched_by[launched.first]] = True
    calls = np.flatnonzero(first & (length >= LONG_CALL_NS))
    bound = (finding.recoverable_ns or 0) / work.scale
    return [Edit("call", calls)] if 2 * int(length[calls].sum()) >= bound else []


def what_if(
    changes: Sequence[tuple[str, float]], work: Replayable | None, reason: str = ""
) -> Finding:
    """What some changes together would be worth, as a finding; without work why that is unknown."""
    named = " and ".join(f"{name} = {factor:g}" for name, factor in changes)
    unknown = Finding("what if", "info", f"{named}: not known, since {reason}", id="what-if")
    if work is None:
        return unknown
    every = [edit for name, factor in changes for edit in _named(name, factor, work)]
    gain, share = work.gain(every) or (0, 0.0)
    text = f"{named}: one replay of the recorded work with these times multiplied"
    return replace(unknown, text=text, window=work.window, gain_ns=gain, gain_share=share)


def changes_of(given: Sequence[str]) -> list[tuple[str, float]]:
    """The names and factors of NAME=FACTOR, each. Raises UsageError."""
    changes = []
    for text in given:
        name, _, factor = text.rpartition("=")
        if not name or re.fullmatch(r"\d+(\.\d*)?|\.\d+", factor) is None:
            raise UsageError(f"--what-if is NAME=FACTOR, with a factor from 0 on, not {text!r}")
        changes.append((name, float(factor)))
    return changes


def _named(name: str, factor: float, work: Replayable) -> list[Edit]:
    """The changes of the host, network, copies, a rank's kernels, or kernels by name."""
    graph = work.graph
    if name == "host":
        return [*replay.host_gaps(graph, factor), *replay.launches(graph, factor)]
    if name == "network":
        return replay.network(graph, factor)
    if name == "copies":
        return replay.copies(graph, factor)
    rows = graph.work.kind == COMPUTE
    if ranked := re.fullmatch(r"rank (\d+)", name):
        units = [unit for (rank, _), unit in work.units.items() if rank == int(ranked[1])]
        rows &= np.isin(graph.work.unit, units)
    else:
        low = name.lower()
        rows &= graph.work.names.where(lambda kernel: fnmatchcase(kernel.lower(), low))
    if not rows.any():
        raise UsageError(f"--what-if: no kernel in the replayed work is {name!r}")
    return replay.operations(np.flatnonzero(rows), factor)
