"""The page that is sent: harmless, self-contained, readable without scripts, small."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

import nsightpy
import nsightpy.render.page.page
from nsightpy.render.page.page import LIMIT, columns_of, page_text, write_page
from nsightpy.results import Field, Table, number
from nsightpy.results.page import Page, PageTable, Section
from nsightpy.units import format_time
from tests.support.browser import Browser, find_chromium
from tests.support.hostile_export import HOSTILE, SECRET, hostile_report
from tests.support.html_page import Document, Element, check_offline
from tests.support.reports import ask
from tests.support.samples import MEASURED, SNAPSHOT, TRAINING

needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="no Chromium here")
KERNELS = "document.querySelector('[data-table=kernels]')"


@pytest.fixture(scope="module")
def with_timeline() -> Page:
    return nsightpy.report([TRAINING, MEASURED, SNAPSHOT], timeline=True)


@pytest.fixture(scope="module")
def made(with_timeline: Page) -> Page:
    return replace(with_timeline, timeline=None)


@pytest.fixture(scope="module")
def page(made: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(made, tmp_path_factory.mktemp("report") / "report.html")


def written(made: Page, path: Path) -> Path:
    with path.open("wb") as file:
        write_page(made, file)
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "report.html"
    ask("report", hostile_report(folder), "--timeline", "-o", path)
    return path


@pytest.mark.slow
def test_everything_is_readable_without_scripts_and_the_page_loads_nothing(
    page: Path, made: Page
) -> None:
    document = Document(page.read_text())
    assert check_offline(document)["img-src"] == "data:"
    text = document.all("main")[0].text
    links = {one.attributes["href"] for one in document.all("a")}
    for section in made.shown:
        assert section.says in document.by_id(section.id).text
        assert f"#{section.id}" in links
        headings = [one.text for one in document.all("h2") if one.inside(section.id)]
        assert headings == [section.title]
    written = [made.verdict, *(one.missing.replace("`", "") for one in made.absent)]
    written += [words for one in made.cards for words in (one.bound, one.finding.next_command)]
    assert [words for words in written if words not in text] == []
    assert [name for name in made.passed if name not in document.by_id("passed").text] == []
    ids = [one.attributes["id"] for one in document.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links} <= set(ids)


def svg_of(image: Element) -> ElementTree.Element:
    """The picture in an image's address."""
    start, _, picture = image.attributes["src"].partition(",")
    assert start == "data:image/svg+xml"
    return ElementTree.fromstring(unquote(picture))


@pytest.mark.slow
def test_every_picture_is_inside(page: Path, made: Page) -> None:
    images = Document(page.read_text()).all("img")
    labels = [picture.label for one in made.shown for picture in one.pictures]
    assert 8 < len(images) <= len(labels)
    for image in images:
        assert image.attributes["alt"] in labels
        svg = svg_of(image)
        assert not [one for one in svg.iter() if one.tag.endswith("script")]
        (style,) = [one.text for one in svg.iter() if one.tag.endswith("style")]
        assert "prefers-color-scheme: dark" in str(style)
        ids = {one.attrib["id"] for one in svg.iter() if "id" in one.attrib}
        for one in svg.iter():
            for value in one.attrib.values():
                assert set(re.findall(r"url\(#([^)]+)\)", value)) <= ids
            link = one.attrib.get("{http://www.w3.org/1999/xlink}href", "data:image/png;base64,")
            assert link.startswith("data:image/png;base64,") or link[1:] in ids


@pytest.mark.slow
def test_a_page_that_is_too_large_loses_pictures_and_rows_and_says_so(
    made: Page, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsightpy.render.page.page, "PICTURES", 200_000)
    few, every = ("".join(page_text(made)), page.read_text())
    assert 0 < few.count("<img") < every.count("<img")
    assert few.count("The picture is too large") == every.count("<img") - few.count("<img")
    fields = (Field("Name", "name"), Field("Total Time (ns)", "time"))
    rows = tuple((f"kernel_{number}_" + "x" * 4000, number) for number in range(100))
    shown = PageTable("kernels", Table("kernels", fields, rows))
    section = Section("kernels", "Kernels", tables=(shown,) * 4, command="nsightpy kernels")
    before, after = page_text(Page("big", ("big",), "verdict", sections=(section,)))
    assert len(before.encode()) + len(after.encode()) <= LIMIT
    assert "and 40 more" in before or "and 70 more" in before


@pytest.mark.slow
def test_hostile_names_stay_text_and_no_secret_is_in_the_page(hostile: Path) -> None:
    text = hostile.read_text()
    document = Document(text)
    kinds = [one.attributes.get("type", "code") for one in document.all("script")]
    assert kinds == ["application/json", "application/json", "code"]
    for image in document.all("img"):
        assert "\x1b" not in "".join(svg_of(image).itertext())
    assert document.all("b") == document.all("iframe") == []
    (kernels,) = (one for one in document.data["sections"] if one["id"] == "kernels")
    names = [row[-1] for row in kernels["tables"][0]["rows"]]
    assert any(name.startswith(HOSTILE[0]) for name in names)
    assert any("\\x1b" in name and "\\u202e" in name for name in names)
    for forbidden in ("\x1b", "\u202e", SECRET, "TOKEN"):
        assert forbidden not in text
    assert "{{ 7 * 7 }}" in document.by_id("kernels").text


def fetched(chromium: Browser, before: int) -> list[str]:
    """What was asked for since: what lies inside the file is not."""
    return [one for one in chromium.requests[before:] if not one.startswith("data:")]


def shown_rows(chromium: Browser, table: str, column: int) -> list[str]:
    found: list[str] = chromium.run(
        f"[...document.querySelectorAll('[data-table={table}] tbody tr')]"
        f".filter((row) => row.offsetParent).map((row) => row.cells[{column}].textContent)"
    )
    return found


@needs_chromium
def test_tables_sort_and_filter(page: Path, chromium: Browser) -> None:
    before, said = len(chromium.requests), len(chromium.messages)
    facts = chromium.open(page)
    assert chromium.messages[said:] == []
    assert fetched(chromium, before) == [page.resolve().as_uri()]
    assert facts["tables"] == len(list(Document(page.read_text()).all("table")))
    assert chromium.run("document.documentElement.scrollWidth <= innerWidth")
    assert len(shown_rows(chromium, "kernels", 0)) == 12
    chromium.run(f"{KERNELS}.querySelector('div + .wide + button, .table > button').click()")
    median = 4
    heading = f"{KERNELS}.querySelectorAll('th')[{median}]"
    medians = sorted(number(value) for value in nsightpy.kernels(str(TRAINING)).column("Med (ns)"))
    down = [format_time(value) for value in reversed(medians)]
    for expected in (down, down[::-1]):
        chromium.run(f"{heading}.firstChild.click()")
        assert shown_rows(chromium, "kernels", median) == expected
    assert chromium.run(f"{heading}.ariaSort") == "ascending"
    chromium.run(
        f"(() => {{ const input = {KERNELS}.querySelector('input.rows');"
        " input.value = 'nvjet 192x2'; input.dispatchEvent(new Event('input')); })()"
    )
    assert len(shown_rows(chromium, "kernels", 5)) == 1
    assert chromium.run(f"{KERNELS}.querySelector('.size').textContent") == "1 of 34 rows"


@needs_chromium
def test_search_finds_a_kernel_by_a_part_of_its_whole_name(page: Path, chromium: Browser) -> None:
    chromium.open(page)
    chromium.press("/", *"nvjet_tst_192x208")
    assert all("192x208" in name for name in shown_rows(chromium, "kernels", 7))
    assert shown_rows(chromium, "api", 0) == []
    assert int(chromium.run("$('hits').textContent").split()[0]) > 3
    found = "document.querySelector('.found[data-of=kernels]').textContent"
    assert chromium.run(found) == "1"
    chromium.press("Escape")
    chromium.run("search('')")
    assert len(shown_rows(chromium, "api", 0)) == 12


@needs_chromium
def test_names_columns_csv_and_theme(page: Path, hostile: Path, chromium: Browser) -> None:
    chromium.open(page)
    kernels = nsightpy.kernels(str(TRAINING))
    cell = f"{KERNELS}.querySelector('td.long')"
    short = chromium.run(f"{cell}.textContent")
    chromium.run(f"{cell}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}))")
    assert chromium.run(f"{cell}.textContent") in kernels.column("Name")
    chromium.run(f"{cell}.click()")
    assert chromium.run(f"{cell}.textContent") == short
    hidden = f"{KERNELS}.querySelector('th.more').offsetParent === null"
    assert chromium.run(hidden) is True
    chromium.run(f"{KERNELS}.querySelector('.columns').click()")
    assert chromium.run(hidden) is False
    chromium.run(f"{KERNELS}.querySelector('.csv').click()")
    chromium.run("new Promise((done) => setTimeout(done, 100))")
    rows = list(csv.reader(io.StringIO(chromium.run("document.body.dataset.copied"))))
    assert rows[0] == list(kernels.columns)
    assert [row[-1] for row in rows[1:]] == kernels.column("Name")
    dark = chromium.run("isDark()")
    chromium.run("document.getElementById('theme').click()")
    assert chromium.run("isDark()") is not dark
    said = len(chromium.messages)
    chromium.open(hostile)
    for every in ("td.long", ".csv"):
        chromium.run(f"document.querySelectorAll('{every}').forEach((one) => one.click())")
    assert "owned" not in chromium.run("document.title")
    assert chromium.messages[said:] == []


@needs_chromium
def test_a_finding_leads_to_its_place_in_the_timeline(
    with_timeline: Page, page: Path, chromium: Browser, tmp_path: Path
) -> None:
    path = written(with_timeline, tmp_path / "report.html")
    # the same reports give the same page, but for the timeline
    pictures = [re.findall("<img[^>]*>", one.read_text()) for one in (page, path)]
    assert pictures[0] == pictures[1]
    assert page.stat().st_size < LIMIT
    before, said = len(chromium.requests), len(chromium.messages)
    chromium.open(path)
    link = "document.querySelector('.to-timeline')"
    low, high = (int(chromium.run(f"{link}.dataset.{name}")) for name in ("from", "to"))
    chromium.run(f"{link}.click()")
    inner = "document.querySelector('iframe').contentWindow"
    shown = chromium.run(
        "new Promise((done) => { const look = () => {"
        f" const facts = {inner}.document.body?.dataset.facts;"
        " facts ? done(JSON.parse(facts)) : setTimeout(look, 20); }; look(); })"
    )
    assert shown["events"] == 14_468
    assert shown["view"] == pytest.approx([low, high], abs=2)
    assert chromium.messages[said:] == []
    assert fetched(chromium, before) == [path.resolve().as_uri()]


def test_columns_are_those_of_a_terminal_the_most_important_first() -> None:
    fields = (
        *(Field("rank", "id"), Field("busy_ns", "time"), Field("idle_share", "share", 4)),
        *(Field("start_ns", "moment"), Field("unknown")),
        *(Field(f"count_{number}") for number in range(6)),
        Field("Name", "name", importance=1),
    )
    long = "void ns::kernel<(int)4, " + "x" * 100 + ">(float *)"
    first = (0, 1_500_000, 0.25, 10**9, None, *range(6), long)
    shown = columns_of(Table("t", fields, (first, (*[None] * 5, *range(6), "k"))))
    cells = {one.heading: [(cell.text, cell.bar) for cell in one.cells] for one in shown}
    assert cells["busy"] == [("1.50 ms", None), ("", None)]
    assert cells["idle %"] == [("25.0", 25.0), ("", None)]
    assert cells["start (s)"] == [("1.000000", None), ("", None)]
    assert "unknown" not in cells
    assert [one.more for one in shown] == 8 * [False] + 3 * [True]
    name, short = next(one.cells for one in shown if one.heading == "name")
    assert (name.full, short.full, short.text) == (True, False, "k")
    assert len(name.text) <= 64
