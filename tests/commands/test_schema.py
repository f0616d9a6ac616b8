"""Every json answer is what its schema says, and the schema says nothing else."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nsightpy
from nsightpy.command_table import COMMANDS
from nsightpy.commands.stats.command import REPORTS as STATS
from tests.support.reports import DDP, ENVELOPE, NSYS, REPORTS, ask, needs_reports
from tests.support.samples import MEASURED, NCU, SINGLE, SNAPSHOT, TRACES, TRAINING

jsonschema = pytest.importorskip("jsonschema")

ANSWERING = [name for name, each in COMMANDS.items() if each.answers]
# What needs another kind of report than one of nsys, or more than reports.
SPECIAL = {"roofline", "headroom", "operators", "graphs", "stats", "compare", "instances"}
PLAIN = [name for name in ANSWERING if name not in SPECIAL]
REQUESTS: tuple[tuple[str | Path, ...], ...] = (
    *((name, TRAINING) for name in PLAIN if name != "memory-usage"),
    *((name, TRACES) for name in PLAIN if name != "select"),
    *((name, SINGLE) for name in ("memory-usage", "select", "memory")),
    ("kernels", SINGLE, "--by", "rank,device,process,stream,grid,block"),
    ("api", SINGLE, "--by", "rank,process"),
    ("memory", SINGLE, "--by", "rank,device,process,stream,memory"),
    ("operators", TRACES, "--by", "shape,thread,rank,module"),
    *(("operators", reports, "--by", "module") for reports in (TRAINING, TRACES)),
    ("operators", TRACES),
    *(("gaps", TRAINING, "--by", by) for by in ("gap", "cause", "call")),
    ("breakdown", TRAINING, "--bins", "9"),
    ("launches", TRAINING, "--by", "stream"),
    *(("ranks", TRAINING, "--by", by) for by in ("kernel", "stage", "call")),
    ("instances", TRAINING, "--of", "iteration"),
    ("instances", TRAINING, "--of", "*", "--bins", "9"),
    ("nvtx", SINGLE, "--metrics"),
    ("compare", TRAINING / "train_rank0.sqlite", TRAINING / "train_rank2.sqlite"),
    *(("stats", SINGLE, "--report", name) for name in STATS),
    ("nvtx", TRAINING, "--tree"),
    *(("collectives", TRAINING, "--by", by) for by in ("node", "pair")),
    ("info", NCU, SINGLE),
    *(("roofline", NCU, "--by", by) for by in ("launch", "variant")),
    ("headroom", TRAINING, "--ncu", MEASURED),
    ("memory-usage", SNAPSHOT),
)


def validated(*request: str | Path) -> dict[str, Any]:
    """A json answer that its schema describes, with no column that the schema does not know."""
    document = ask(*request, "--format", "json").json
    command = str(request[0])
    schema = COMMANDS[command].load().schema
    jsonschema.Draft202012Validator(schema).validate(document)
    assert set(document) <= set(schema["properties"])
    for rows, items in rows_of(document, schema):
        known = [set(item["properties"]) for item in items]
        assert all(any(set(row) <= names for names in known) for row in rows)
    if command != "summarize":
        assert list(document)[: len(ENVELOPE)] == ENVELOPE
        shown, total = len(document["rows"]), document["total_rows"]
        assert document["truncated"] == (total is None or total > shown)
        assert set(document["untrusted"]) <= set().union(*document["rows"], document["untrusted"])
    return document


def rows_of(
    document: dict[str, Any], schema: dict[str, Any]
) -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """Every list of rows with the schemas that its rows may have."""
    for name, rows in document.items():
        items = schema["properties"][name].get("items", {})
        if rows and isinstance(rows, list) and isinstance(rows[0], dict) and "$ref" not in items:
            found = items.get("anyOf", [items])
            if all("properties" in one for one in found):
                yield rows, found


def test_schemas_are_schemas_and_every_command_is_validated() -> None:
    for command in ANSWERING:
        jsonschema.Draft202012Validator.check_schema(COMMANDS[command].load().schema)
    assert {str(request[0]) for request in REQUESTS} == set(ANSWERING) - {"graphs"}


@pytest.mark.slow
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: "-".join(Path(p).stem for p in r))
def test_answers_about_samples(request_: tuple[str | Path, ...]) -> None:
    """Whole and cut to --top; chosen launches are planned together."""
    whole, cut = (validated(*request_, "--top", top) for top in ("0", "1"))
    assert whole["inputs"]
    if request_[0] != "summarize":
        assert (whole["total_rows"], whole["truncated"]) == (len(whole["rows"]), False)
        assert cut["total_rows"] == len(whole["rows"]) >= len(cut["rows"])
        assert request_[0] == "select" or all(row in whole["rows"] for row in cut["rows"])


def test_the_difference_of_two_snapshots(tmp_path: Path) -> None:
    copy = Path(shutil.copy(SNAPSHOT, tmp_path / "later.pickle"))
    assert "delta_at_peak_bytes" in validated("memory-usage", SNAPSHOT, copy, "--diff")["rows"][0]


def test_a_wrong_document_is_told() -> None:
    document = ask("kernels", SINGLE, "--format", "json").json
    validator = jsonschema.Draft202012Validator(nsightpy.kernels.schema)
    for wrong in (
        {**document, "schema": "nsightpy.kernels/2"},
        {**document, "truncated": None},
        {**document, "rows": [{**document["rows"][0], "Instances": 1.5}]},
        {name: value for name, value in document.items() if name != "total_rows"},
    ):
        assert not validator.is_valid(wrong)


@needs_reports
@pytest.mark.parametrize("command", PLAIN)
def test_answers_about_real_reports(command: str) -> None:
    for name in (DDP, "cudagraph_a100_2024.6.sqlite", "trixi_v100_2023.1.sqlite"):
        validated(command, NSYS / name)


@needs_reports
def test_answers_about_other_real_files() -> None:
    decode = REPORTS / "kineto" / "sglang_decode_graphs.json.gz"
    for command in ("operators", "kernels"):
        validated(command, REPORTS / "kineto" / "vit_h100.json.gz")
    for words in (["iterations"], *(["graphs", "--by", by] for by in ("graph", "replay", "node"))):
        validated(*words, decode)
    for path in sorted((REPORTS / "ncu").glob("*.csv"))[:2]:
        validated("roofline", path)
