"""Groups of many ranks that work in lockstep are found."""

from __future__ import annotations

import numpy as np
import pytest

from nsightpy.analysis.collectives.lanes import grouped_lanes
from nsightpy.frames import Ints

GROUPS, MEMBERS, TIMES = 24, 8, 70


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


@pytest.mark.parametrize("seed", range(3))
def test_groups_in_lockstep_are_found(seed: int) -> None:
    ends, lanes = lanes_in_lockstep(seed)
    found = grouped_lanes(ends, lanes, np.arange(GROUPS * MEMBERS))
    assert sorted(found) == [list(range(one, GROUPS * MEMBERS, GROUPS)) for one in range(GROUPS)]
