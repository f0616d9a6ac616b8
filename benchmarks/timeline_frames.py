"""How fast the timeline's page is: loading it, and one frame at every zoom, in headless Chromium.

    python benchmarks/timeline_frames.py                    # 1,000,000 events against 100,000

Frames are counted in processor time of the page's thread, so that a busy machine changes little.
The smaller page is drawn in turn with the larger one: their ratio says what ten times the events
cost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from nsightpy.frames import Labels  # noqa: E402
from nsightpy.render.timeline.page import write_page  # noqa: E402
from nsightpy.results.tracks import (  # noqa: E402
    CALL,
    CALLS,
    COMMUNICATION,
    COMPUTE,
    RANGE,
    RANGES,
    STREAM,
    Lane,
    Owner,
    Timeline,
    Track,
)
from tests.support.browser import Browser, browser  # noqa: E402

RANKS, ROUNDS, LARGER = 8, 2, 10
# What of a rank's events is on which lane: kind, label, category, share of all, share of time.
LANES = (
    (RANGES, "NVTX, thread 1", RANGE, 0.2, 0.9),
    (STREAM, "stream 7", COMPUTE, 0.45, 0.8),
    (STREAM, "stream 13", COMMUNICATION, 0.1, 0.3),
    (CALLS, "API calls, thread 1", CALL, 0.25, 0.5),
)
EVENT_NS = 20_000
NAMES = 400
# Frames from everything to a few events, each moved on a little: what a wheel and a drag ask for.
FRAMES = """
(() => {
  const whole = state.full.end - state.full.start;
  for (let k = 0; k < 60; k++) {
    const span = whole * Math.exp(-k / 8), at = state.full.start + whole * (0.3 + k / 200);
    show(at - span / 2, at + span / 2);
    draw();
  }
  return 60;
})()
"""


def timeline_of(events: int) -> Timeline:
    """A made-up job: every lane has events of many lengths, one after the other."""
    random = np.random.default_rng(7)
    names = tuple(f"kernel_{number}" for number in range(NAMES))
    owners = tuple(Owner(f"r{rank}", "node0", rank, rank, 0) for rank in range(RANKS))
    end = round(events / RANKS * 0.45 * EVENT_NS)

    def lane(kind: str, label: str, category: int, share: float, busy: float) -> Lane:
        count = max(round(events / RANKS * share), 1)
        steps = random.exponential(1.0, count)
        edges = np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum() * end
        starts = edges[:-1].astype(np.int64)
        ends = starts + np.maximum((np.diff(edges) * busy).astype(np.int64), 1)
        codes = random.integers(0, NAMES, count).astype(np.int32)
        levels, categories = np.zeros(count, np.int16), np.full(count, category, np.uint8)
        return Lane(kind, label, 7, starts, ends, Labels(codes, names), levels, categories)

    tracks = [Track(owner, tuple(lane(*one) for one in LANES)) for owner in owners]
    return Timeline(owners, 0, end, "made up", lambda _: iter(tracks), lambda: 0, ("made up",))


def opened(page: Browser, path: Path) -> None:
    """Load the page and unfold its rows."""
    page.open(path)
    page.run("foldAll(false)")


def busy_ms(page: Browser) -> float:
    """The processor time that the page's thread has taken so far."""
    found = page.call("Performance.getMetrics")["metrics"]
    return float(next(1e3 * one["value"] for one in found if one["name"] == "TaskDuration"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    events = parser.parse_args().events
    sizes = {"small": events // LARGER, "large": events}
    loading: dict[str, list[float]] = {name: [] for name in sizes}
    frames: dict[str, list[float]] = {name: [] for name in sizes}
    with tempfile.TemporaryDirectory() as scratch, browser(1500, 950) as page:
        page.call("Performance.enable", timeDomain="threadTicks")
        for name, count in sizes.items():
            with (Path(scratch) / name).with_suffix(".html").open("wb") as file:
                write_page(timeline_of(count), file)
                size = file.tell() / 1e6
        for _ in range(ROUNDS):
            for name in sizes:
                opened(page, (Path(scratch) / name).with_suffix(".html"))
                drawn = busy_ms(page)
                count = page.run(FRAMES)
                loading[name].append(drawn)  # counted from when the page was opened
                frames[name].append((busy_ms(page) - drawn) / count)
    small, large = (median(frames[name]) for name in sizes)
    print(f"{events:,} events, page of {size:.1f} MB, read in {median(loading['large']):,.0f} ms")
    print(f"a frame, mean of all zooms: {large:.1f} ms")
    print(f"against {sizes['small']:,} events: {large / small:.2f}x ({small:.1f} ms)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
