"""The offline page: what it holds, what it may do, and how it behaves in a browser."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nsightpy
from nsightpy.render.timeline.page import write_page
from nsightpy.results.tracks import FINDING, ITERATION, Counter, Mark
from tests.support.browser import Browser, find_chromium, settled
from tests.support.html_page import Document, check_offline
from tests.support.samples import TRAINING
from tests.support.timelines import lane_of, timeline_of, written

needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here")
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=document.title='owned'>",
    "<!--<script>",
    "]]>&amp;\"'`${1}",
    "\x1b]0;owned\x07\u202etxt",
    "naïve 汉字 🚀 \ud800",
)


def head_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="head">(.*?)</script>', page, re.S)
    assert found
    head: dict[str, Any] = json.loads(found[1])
    return head


def lanes_of(page: str) -> Iterator[tuple[str, dict[str, Any], dict[str, np.ndarray]]]:
    """The lanes of a page as a reader who knows only the format finds them."""
    for track in head_of(page)["tracks"]:
        block = re.search(rf'<script type="text/plain" id="t{track["block"]}">(.*?)</script>', page)
        data = zlib.decompress(base64.b64decode(block[1])) if block else b""
        at = 0
        for lane in track["lanes"]:
            columns = {}
            for name, planes in lane["columns"]:
                size = planes * lane["rows"]
                part = np.frombuffer(data, np.uint8, size, at).reshape(planes, -1)
                columns[name] = (part.T.astype(np.int64) << (8 * np.arange(planes))).sum(axis=1)
                at += size
            columns["start"] = lane["base"] + np.cumsum(columns["start"])
            yield track["label"], lane, columns
        counters = track["counters"]
        at += sum(planes * one["rows"] for one in counters for _, planes in one["columns"])
        assert at == len(data)


def test_every_event_is_in_the_page_which_may_load_nothing(training: Path) -> None:
    text = training.read_text()
    assert "img-src" not in check_offline(Document(text))
    every = head_of(text)["names"]
    found = {(label, lane["label"]): (lane, columns) for label, lane, columns in lanes_of(text)}
    events = 0
    for track in nsightpy.timeline(str(TRAINING)):
        for lane in track.lanes:
            meta, columns = found.pop((track.owner.label, lane.label))
            assert (columns["start"] == lane.starts).all()
            assert (columns["start"] + columns["duration"] == lane.ends).all()
            assert [every[code] for code in columns["name"].tolist()] == list(lane.names)
            assert meta["depth"] == lane.depth
            events += len(lane)
    assert not found
    assert events == 14_468


@pytest.fixture
def hostile_page(tmp_path: Path) -> Path:
    starts = 1000 * np.arange(len(HOSTILE), dtype=np.int64)
    lane = lane_of(starts, starts + 900, HOSTILE)
    owner, image = timeline_of(6000, lane).owners[0], HOSTILE[1]
    kinds = (FINDING, ITERATION)
    marks = tuple(Mark(kind, image, image, 0, 900, owner, HOSTILE[0]) for kind in kinds)
    about: dict[str, Any] = {"inputs": (f"</title>{HOSTILE[0]}.sqlite",), "notes": [HOSTILE[0]]}
    counters = (Counter(image, "bytes", starts, starts),)
    timeline = timeline_of(6000, lane, counters=counters, marks=marks, **about)
    return written(write_page, timeline, tmp_path / "hostile.html")


def test_hostile_names_stay_text(hostile_page: Path) -> None:
    text = hostile_page.read_text()
    for tag in (r"<script\b", "</script"):
        assert len(re.findall(tag, text, re.I)) == 3
    assert "<img" not in text
    assert head_of(text)["names"][0] == HOSTILE[0]
    assert "\\x1b" in head_of(text)["names"][4]


@needs_chromium
def test_hostile_names_do_nothing_in_a_browser(hostile_page: Path, chromium: Browser) -> None:
    facts = chromium.open(hostile_page, "#stretch=0-2500&find=img")
    assert facts["events"] == len(HOSTILE)
    chromium.run("choose({track: state.tracks[0], lane: state.tracks[0].lanes[0], row: 1})")
    assert "<img" in chromium.run("$('details').textContent")
    chromium.run("openPane('marks')")
    for pane in ("marks", "found"):
        assert "<img" in chromium.run(f"$('{pane}').textContent")
    chromium.run("setStretch({ start: 0, end: 2500 })")
    titles = chromium.run("[...$('totals').querySelectorAll('td')].map((cell) => cell.title)")
    assert any("onerror" in title for title in titles)
    assert chromium.run("document.querySelectorAll('img, i.x, script').length") == 2
    assert "owned" not in chromium.run("document.title")


@needs_chromium
def test_the_page_draws_what_the_breakdown_says(training: Path, chromium: Browser) -> None:
    before = len(chromium.requests)
    facts = chromium.open(training)
    assert (facts["tracks"], facts["events"]) == (4, 14_468)
    assert facts["collectives"] > 300
    budgets = nsightpy.breakdown(str(TRAINING)).records()
    for strips, budget in zip(facts["strips"], budgets, strict=True):
        wanted = ("compute_ns", "exposed_communication_ns", "copy_only_ns")
        assert strips[:3] == pytest.approx([budget[name] for name in wanted], abs=2)
        assert sum(strips) == pytest.approx(budget["busy_ns"], abs=3)
    assert chromium.requests[before:] == [training.resolve().as_uri()]
    assert chromium.messages == []


@needs_chromium
def test_zoom_pan_search_and_fold(training: Path, chromium: Browser) -> None:
    start, end = chromium.open(training)["view"]
    chromium.mouse("mouseWheel", 800, 400, deltaX=0, deltaY=-600)
    settled(chromium, f"view.end - view.start < {(end - start) / 2}")
    middle = chromium.run("timeAt(800)")
    chromium.drag((800, 400), (900, 400))
    assert chromium.run("timeAt(900)") == pytest.approx(middle)
    chromium.press("f")
    assert chromium.run("view.end - view.start") >= end - start
    chromium.press("/", *"allreduce")
    lanes = (lane for track in nsightpy.timeline(TRAINING) for lane in track.lanes)
    hits = sum("allreduce" in name.lower() for lane in lanes for name in lane.names)
    assert chromium.run("facts().hits") == hits
    chromium.run("jump(true)")
    assert "AllReduce" in chromium.run("facts().chosen")
    whole = chromium.run("state.height")
    chromium.run("(find(''), choose(null), foldAll(true))")
    assert chromium.run("state.height") < whole / 3
