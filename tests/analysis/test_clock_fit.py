"""The fit of all clocks is as precise as its own errors say, and outliers do not move it."""

from dataclasses import astuple, replace

import numpy as np
import pytest

from nsightpy.analysis.clock_alignment.fit import (
    Observations,
    drift_errors,
    fitted,
    solve,
)

pytestmark = pytest.mark.slow

JITTER_NS, SPAN_NS = 500.0, 100e6
EARLY, LATE = 15, 19


def observed(clocks: int, instances: int, seed: int) -> Observations:
    """Clocks without error that all meet in every instance; jitter is bell-shaped."""
    random = np.random.default_rng(seed)
    times = np.sort(random.uniform(-SPAN_NS / 2, SPAN_NS / 2, instances))
    instance = np.repeat(np.arange(instances, dtype=np.int32), clocks)
    return Observations(
        np.tile(np.arange(clocks, dtype=np.int32), instances),
        instance,
        times[instance],
        JITTER_NS * random.standard_normal(len(instance)),
        random.integers(EARLY, LATE, instances, dtype=np.int32)[instance],
        clocks,
    )


def least_squares_error(seen: Observations) -> float:
    """The standard error of the drift between two clocks that meet in all instances."""
    times = seen.times[seen.clock == 0]
    return float(JITTER_NS * np.sqrt(2 / np.square(times - times.mean()).sum()))


@pytest.mark.parametrize(("clocks", "instances"), [(2, 40), (2, 150), (8, 40)])
def test_drifts_are_as_precise_as_their_errors_say(clocks: int, instances: int) -> None:
    said, best = [], []
    for seed in range(150):
        seen = observed(clocks, instances, seed)
        fit = fitted(seen, np.arange(clocks))
        drift = fit.drifts[1] - fit.drifts[0]
        said.append(drift / drift_errors(seen, fit, np.arange(clocks), anchor=0)[1])
        best.append(drift / least_squares_error(seen))
    assert 0.85 < np.std(said) < 1.2
    assert np.std(best) < 1.15, "nearly the precision of least squares"


@pytest.mark.parametrize("clocks", [2, 8])
def test_drifts_are_told_where_they_can_be(clocks: int) -> None:
    hosts = [f"host {clock % 2}" for clock in range(clocks)]
    told = {0.0: 0, 6.0: 0}
    for seed in range(60):
        seen = observed(clocks, 60, seed)
        error = least_squares_error(seen) * (2 / clocks) ** 0.5
        for away in told:
            tilted = seen.errors + away * error * seen.times * (seen.clock % 2)
            offsets, drifts, known = solve(replace(seen, errors=tilted), hosts)
            if drifts[1] and away:
                assert drifts[1::2] == pytest.approx(away * error, abs=4 * error)
                assert not drifts[::2].any()
            assert np.ptp(offsets) < 6 * JITTER_NS / 60**0.5
            assert known.all() == (drifts[1] != 0)
            told[away] += drifts[1] != 0
    assert told[0.0] <= 1
    assert told[6.0] >= 57


def test_ends_that_are_late_or_of_long_collectives_move_nothing() -> None:
    for clocks in (2, 8):
        seen = observed(clocks, 150, 2)
        late = np.random.default_rng(3).random(len(seen.errors)) < 0.1 * (seen.clock == 1)
        fit = fitted(replace(seen, errors=seen.errors + 50_000.0 * late), np.arange(0))
        assert np.ptp(fit.offsets) < 0.5 * JITTER_NS
    seen = observed(2, 120, 4)
    long = seen.length_class >= (EARLY + LATE) // 2
    errors = np.where(long, 25 * seen.errors + 12_000.0 * (seen.clock == 1), seen.errors)
    assert np.ptp(fitted(replace(seen, errors=errors), np.arange(0)).offsets) < JITTER_NS


def test_sets_that_meet_nowhere_have_offsets_of_their_own() -> None:
    seen = observed(2, 50, 5)
    other = replace(seen, clock=seen.clock + 2, instance=seen.instance + 50)
    columns = zip(astuple(seen)[:-1], astuple(other)[:-1], strict=True)
    fit = fitted(Observations(*map(np.concatenate, columns), clocks=5), np.arange(5))
    assert np.isfinite(fit.offsets).all()
    assert fit.offsets[1] - fit.offsets[0] == pytest.approx(fit.offsets[3] - fit.offsets[2], abs=1)
    assert fit.offsets[4] == fit.drifts[4] == 0
