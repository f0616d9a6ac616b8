"""A frame of all ranks on one clock: the report API for many reports, times aligned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from nsightpy.query.rank_alignment import alignment_of
from nsightpy.query.request import Reading
from nsightpy.query.signature import described_by
from nsightpy.report_sets.rank_opening import Paths, open_ranks

if TYPE_CHECKING:
    import pandas as pd


@described_by(open_ranks)
def aligned_frame(reports: Paths, name: str, **reading: Unpack[Reading]) -> pd.DataFrame:
    """A frame of all ranks ("kernels", ...) with rank and report, its times on one clock.

    Times are ns since the first rank's report began, on the clock of its host, as in a timeline;
    rows are those of `RankSet.frame`. What limits the alignment is in `.attrs["notes"]`.
    """
    ranks = open_ranks(reports, **reading)
    alignment = alignment_of(ranks)
    aligned = ranks.frame(name, clocks=alignment.fits).to_pandas()
    without = set(ranks.inputs) - {fit.report for fit in alignment.fits} - set(ranks.repeated)
    lost = [f"left out, no clock: {path}" for path in ranks.inputs if path in without]
    aligned.attrs["notes"] = (*alignment.notes, *lost, *ranks.notes)
    return aligned
