"""The same export written otherwise gives the same bytes, whatever the question."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from check_same_answers import QUESTIONS, differing

from tests.support.full_export import full
from tests.support.reports import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("equal", [False, True], ids=["sample", "two equal processes"])
def test_every_command_and_frame_gives_the_same_bytes(equal: bool, tmp_path: Path) -> None:
    """Of equal processes every row has another of the same time."""
    path = tmp_path / "a.sqlite"
    if equal:
        full(path).write()
    else:
        shutil.copy(ROOT / "sample_reports" / "single_process.sqlite", path)
    assert len(QUESTIONS) > 30
    assert differing(path, 2) == {}
