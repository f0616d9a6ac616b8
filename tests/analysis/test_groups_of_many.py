"""Groups of many ranks that work in lockstep: found, and without comparing all with all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from nsightpy.analysis.collectives import neighbours
from nsightpy.frames import Floats, Ints

GROUPS, MEMBERS, TIMES = 24, 8, 70
TOLERANCE_NS = 20_000


def lanes_in_lockstep(seed: int) -> tuple[Ints, Ints]:
    """Ends (ascending) and their lanes: each group ends at a moment of its own, all within 20 us.

    Members of group g are the lanes g, g + GROUPS, g + 2 GROUPS, ...
    """
    random = np.random.default_rng(seed)
    common = np.arange(TIMES) * 1_000_000 + random.normal(0, 5_000, (GROUPS, TIMES))
    lanes = np.repeat(np.arange(GROUPS * MEMBERS), TIMES)
    ends = common[np.arange(GROUPS * MEMBERS) % GROUPS].ravel()
    ends = np.rint(ends + random.normal(0, 500, len(lanes))).astype(np.int64)
    order = np.argsort(ends, kind="stable")
    return ends[order], lanes[order]


def test_groups_in_lockstep_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    every = neighbours.Neighbours.of

    def counted(
        self: neighbours.Neighbours, wanted: Ints
    ) -> Iterator[tuple[int, Ints, Floats, Floats]]:
        looked_at.extend(wanted.tolist())
        return every(self, wanted)

    monkeypatch.setattr(neighbours.Neighbours, "of", counted)
    ends, lanes = lanes_in_lockstep(1)
    units = {lane: lane for lane in range(GROUPS * MEMBERS)}
    found = neighbours.grouped_lanes(ends, lanes, TOLERANCE_NS, units)
    wanted = [list(range(one, GROUPS * MEMBERS, GROUPS)) for one in range(GROUPS)]
    assert sorted(found) == wanted
    assert len(looked_at) == len(set(looked_at)) < 0.7 * len(units)


def test_lanes_that_are_far_at_first_sight_are_left_out() -> None:
    ends, lanes = lanes_in_lockstep(3)
    view = neighbours.Neighbours(ends, lanes, TOLERANCE_NS, {n: n for n in range(GROUPS * MEMBERS)})
    wanted = np.asarray([0])
    near = view._near(wanted, view.sampled[wanted])
    kept = near[2][view._close(near, view.sampled[wanted])]
    assert len(np.unique(near[2])) > 0.9 * GROUPS * MEMBERS
    assert set(range(GROUPS, GROUPS * MEMBERS, GROUPS)) <= set(kept.tolist())
    assert len(np.unique(kept)) < 0.8 * GROUPS * MEMBERS
