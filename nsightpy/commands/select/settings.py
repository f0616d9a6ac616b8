"""What `select` is asked: which kernels are chosen, and how ncu measures them."""

from __future__ import annotations

from dataclasses import dataclass

from nsightpy.analysis.selection.coverage import passes_of
from nsightpy.commands.select.plan import FORMS
from nsightpy.errors import UsageError, require_choice
from nsightpy.ncu_command.runs import APPLICATION
from nsightpy.readers.nsys.capture_start import CUDA_PROFILER_API

AUTO = "auto"
# The sets that versions of ncu have had (ncu --list-sets).
SETS = (
    *("basic", "default", "detailed", "full", "memory", "nvlink", "pmsampling", "roofline"),
    *("source", "sourcelevel", "none"),
)
CAPTURE_RANGES = (AUTO, "none", CUDA_PROFILER_API)


@dataclass(frozen=True, slots=True)
class Criteria:
    """Which kernels are chosen, by which of their launches, within which budget."""

    coverage: float | None = None
    top: int | None = None
    communication: tuple[str, ...] = ()
    with_communication: bool = False
    outlier: bool = False
    warm_up: int = 1
    whole: bool = False
    budget: int | None = None
    passes: int | None = None
    profile_rank: str | int | None = None

    def __post_init__(self) -> None:
        if self.coverage is not None and not 0 < self.coverage <= 1:
            raise UsageError(f"coverage is a share above 0 and up to 1, not {self.coverage}")


@dataclass(frozen=True, slots=True)
class NcuSettings:
    """How ncu is run on them: metrics, names of kernels and reports, the application."""

    metric_set: str | None = None
    sections: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    form: str = AUTO
    one_run: bool = False
    rank_variable: str | None = None
    output: str = "ncu"
    overwrite: bool = False
    kill: bool = False
    capture_range: str = AUTO
    extra: tuple[str, ...] = ()
    version: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_choice("form", self.form, FORMS)
        require_choice("capture_range", self.capture_range, CAPTURE_RANGES)
        has_sections = any("section-folder" in word for word in self.extra)
        if self.metric_set and self.metric_set not in SETS and not has_sections:
            raise UsageError(
                f"ncu has no set of sections {self.metric_set!r}: it has {', '.join(SETS)}; "
                "sets of your own need --ncu-option --section-folder=FOLDER"
            )

    @property
    def sets(self) -> str:
        """The set of sections: roofline unless sections or metrics are given."""
        usual = "" if self.sections or self.metrics else "roofline"
        return usual if self.metric_set is None else self.metric_set

    @property
    def command(self) -> tuple[str, ...]:
        """The application's own command, or a word that stands for it."""
        return self.application or APPLICATION

    def passes(self, given: int | None) -> int:
        """The passes of one launch: as given, else assumed for the set of sections."""
        return passes_of(self.sets, given)
