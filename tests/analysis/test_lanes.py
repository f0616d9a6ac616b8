"""Groups that end almost together are distinguished by whom they wait for, only with evidence."""

import numpy as np
import pytest

from nsightpy.analysis.collectives.lanes import grouped_lanes, groups_among, shared

JITTER_NS, SKEW_NS = 500.0, 1_500.0


def _job(labels: list[int], times: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of lanes whose groups end 50 us after their own last member has come."""
    random = np.random.default_rng(seed)
    shape = (len(labels), times)
    starts = random.normal(0.0, SKEW_NS, shape)
    ends = 50_000.0 + random.normal(0.0, JITTER_NS, shape)
    for label in set(labels):
        own = np.asarray(labels) == label
        ends[own] += starts[own].max(axis=0)
    return starts, ends


def _same(one: list[int], other: list[int]) -> bool:
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


GRIDS = {
    "pairs side by side": [0, 0, 1, 1, 2, 2, 3, 3],
    "every fourth": [0, 1, 2, 3] * 4,
    "the middle axis of three": [0, 1, 0, 1, 2, 3, 2, 3],
    "two of two": [0, 1, 0, 1],
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", GRIDS)
def test_groups_of_a_grid(name: str, seed: int) -> None:
    labels = GRIDS[name]
    starts, ends = _job(labels, 24, seed)
    found = groups_among(starts, ends, np.arange(len(labels)), len(labels))
    assert _same(found.labels.tolist(), labels)
    assert found.sure


@pytest.mark.parametrize("seed", range(20))
def test_one_group_stays_one(seed: int) -> None:
    for lanes, times in ((3, 4), (3, 16), (4, 16), (8, 4), (12, 4), (12, 16)):
        found = groups_among(*_job([0] * lanes, times, seed), np.arange(lanes), lanes)
        assert not found.labels.any()
    # nodes leave apart
    starts, ends = _job([0] * 8, 32, seed)
    ends[4:] += np.random.default_rng(seed + 1).normal(0.0, 5_000.0, 32)
    assert not groups_among(starts, ends, np.arange(8), 8).labels.any()


@pytest.mark.parametrize("seed", range(5))
def test_ranks_that_were_not_captured_and_instances_that_are_missing(seed: int) -> None:
    labels = [0, 1, 2, 3] * 3
    starts, ends = _job(labels, 48, seed)
    there = np.asarray([position for position in range(12) if position != 6])
    found = groups_among(starts[there], ends[there], there, 12)
    assert _same(found.labels.tolist(), [labels[position] for position in there])
    starts, ends = _job([0, 1] * 3, 64, seed)
    lost = np.random.default_rng(seed).random(starts.shape) < 0.1
    starts[lost] = ends[lost] = np.nan
    assert _same(groups_among(starts, ends, np.arange(6), 6).labels.tolist(), [0, 1] * 3)


@pytest.mark.parametrize(
    ("labels", "times", "others", "found", "sure"),
    [
        ([0, 1, 0, 1], 2, None, [0, 0, 0, 0], False),  # few collectives tell nothing
        ([0, 1, 0, 1], 2, [0, 1, 0, 1], [0, 1, 0, 1], True),  # other operations then do
        ([0, 0, 1, 1], 40, [0, 1, 0, 1], [0, 0, 1, 1], True),  # what ends decide stays
        ([0, 0, 0, 0], 40, [0, 1, 0, 1], [0, 0, 0, 0], True),
    ],
)
def test_groups_of_other_operations_decide_where_ends_do_not(
    labels: list[int], times: int, others: list[int] | None, found: list[int], sure: bool
) -> None:
    starts, ends = _job(labels, times, 1)
    told = None if others is None else np.asarray(others)
    groups = groups_among(starts, ends, np.arange(4), 4, told)
    assert (groups.labels.tolist(), groups.sure) == (found, sure)


def test_what_most_lanes_share_is_compared() -> None:
    """Lanes may lack collectives; times count from a moment common to all of them."""
    period = np.arange(40) * 1_000_000
    starts, ends = (np.rint(times + period).astype(np.int64) for times in _job([0, 1, 0], 40, 2))
    kept = [slice(None), slice(3, None), slice(0, 15)]
    began, ended = shared([(starts[lane, own], ends[lane, own]) for lane, own in enumerate(kept)])
    assert ended.shape == (3, 40)
    assert np.isnan(ended).sum(axis=1).tolist() == [0, 3, 25]
    assert ended[1, 5] - began[1, 5] == ends[1, 5] - starts[1, 5]
    assert ended[1, 5] - ended[0, 5] == ends[1, 5] - ends[0, 5]


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_many_ranks_in_lockstep_are_found(seed: int) -> None:
    """Each of 24 groups ends at a moment of its own, all within 20 us; members are apart by 24."""
    random, groups, members, times = np.random.default_rng(seed), 24, 8, 70
    common = np.arange(times) * 1_000_000 + random.normal(0, 5_000, (groups, times))
    lanes = np.repeat(np.arange(groups * members), times)
    ends = common[np.arange(groups * members) % groups].ravel()
    ends = np.rint(ends + random.normal(0, 500, len(lanes))).astype(np.int64)
    order = np.argsort(ends, kind="stable")
    found = grouped_lanes(ends[order], lanes[order], np.arange(groups * members))
    assert sorted(found) == [list(range(one, groups * members, groups)) for one in range(groups)]
