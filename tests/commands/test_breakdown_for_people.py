"""What a reader of the terminal sees beside idle: the launch-starved time that is idle."""

from __future__ import annotations

import pytest

import nsightpy
from nsightpy.commands.breakdown import beside_idle
from tests.support.reports import NSYS


@pytest.mark.skipif(not NSYS.is_dir(), reason="no real reports here")
def test_launch_starved_is_never_more_than_idle() -> None:
    for path in sorted(NSYS.glob("*.sqlite")):
        try:
            table = nsightpy.breakdown(path)
        except nsightpy.NsightpyError:
            continue
        for row, shown in zip(table.records(), beside_idle(table).records(), strict=True):
            if row["launch_starved_ns"] is None:
                assert shown["launch_starved_ns"] is None
                continue
            assert shown["launch_starved_ns"] <= min(row["launch_starved_ns"], row["idle_ns"])
            assert "launch_starved_idle_ns" not in shown
