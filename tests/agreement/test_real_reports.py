"""Every command on every real export: an answer, alike in every format, the input untouched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reports import REQUESTS, exports, formats_of, told

pytestmark = pytest.mark.slow


@exports
def test_inputs_are_untouched_and_nothing_lies_beside_them(path: Path) -> None:
    found = told(path)
    assert {request for request, _ in found.answers} == set(REQUESTS)
    assert found.after == found.before


@exports
def test_every_command_answers_or_says_why_not(path: Path) -> None:
    for (request, form), answer in told(path).answers.items():
        assert answer.code == 0
        assert "Traceback" not in answer.stderr
        assert b"\x1b" not in answer.everything
        lines = answer.stderr.splitlines()
        assert all(line.startswith("note: ") for line in lines), lines
        if form == "table" and request[0] not in ("summarize", "info"):
            assert len(answer.text.splitlines()) > 2 or lines, request
        if form == "table" and request[0] == "summarize":
            assert max(map(len, answer.text.splitlines())) > 20


@exports
def test_csv_and_json_agree(path: Path) -> None:
    for request in [one for one in REQUESTS if "csv" in formats_of(one)]:
        document = told(path).answers[request, "json"].json
        found = document["findings" if request[0] == "summarize" else "rows"]
        head, *lines = told(path).answers[request, "csv"].csv
        assert len(lines) == len(found)
        for line, row in zip(lines, found, strict=True):
            for name, cell in zip(head, line, strict=True):
                assert same(cell, row[name]), (request, name, cell, row[name])


def same(cell: str, value: object) -> bool:
    if value is None:
        return cell == ""
    if isinstance(value, str):
        return cell in (value, f"'{value}")
    return float(cell) == pytest.approx(value, abs=5e-5)
