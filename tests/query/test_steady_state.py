"""The steady state where a capture says little: operations without a length."""

from __future__ import annotations

from pathlib import Path

from simulator import Export

from tests.support.reports import rows_of


def test_operations_without_a_length_have_no_steady_state(tmp_path: Path) -> None:
    export = Export(tmp_path / "a.sqlite")
    export.gpu()
    export.cuda_device()
    for at in range(1_000, 20_000, 1_000):
        export.kernel(at, at, "k", launch=(at - 500, at - 400))
    assert rows_of("findings", export.write()) is not None
