"""Groups that end almost together are distinguished by whom they wait for, only with evidence."""

from __future__ import annotations

import numpy as np
import pytest

from nsightpy.analysis.collectives.lanes import groups_among, shared

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
@pytest.mark.parametrize("lanes", [3, 4, 8, 12])
@pytest.mark.parametrize("times", [4, 16])
def test_one_group_stays_one(lanes: int, times: int, seed: int) -> None:
    starts, ends = _job([0] * lanes, times, seed)
    assert not groups_among(starts, ends, np.arange(lanes), lanes).labels.any()
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
