"""Where the real Nsight Compute reports are, and metric frames built by hand."""

import importlib.util
from collections.abc import Mapping

import pytest

from nsightpy.analysis.roofline.points import launch_rooflines
from nsightpy.frames import METRICS, RULES, Frame
from nsightpy.readers.ncu.tables import GPU, Launch, Metric, launches_frame
from nsightpy.results.rooflines import RooflineLaunch
from tests.support.reports import REPORTS as ALL_REPORTS, ROOT

REPORTS = ALL_REPORTS / "ncu"
SAMPLE = ROOT / "sample_reports" / "kernels_h100.ncu.csv"
GENE = sorted((REPORTS / "gene6rank").glob("*.ncu-rep"))

needs_reports = pytest.mark.skipif(not REPORTS.is_dir(), reason="the real reports are not here")
needs_library = pytest.mark.skipif(
    importlib.util.find_spec("ncu_report") is None, reason="ncu_report is not installed"
)
every_report = pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=needs_library)
        for path in [*sorted(REPORTS.glob("*.ncu-rep")), *GENE]
    ]
    or [pytest.param(None, marks=needs_reports, id="none")],
)

FP32 = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"
CLOCKS = {
    "sm__cycles_elapsed.avg.per_second": 1e9,
    "smsp__cycles_elapsed.avg.per_second": 1e9,
    "lts__cycles_elapsed.avg.per_second": 1e9,
    "l1tex__cycles_elapsed.avg.per_second": 1e9,
    "dram__cycles_elapsed.avg.per_second": 1e9,
    "gpu__time_duration.sum": 1e6,
}


def per_cycle(kind: str, add: float, mul: float, fma: float) -> dict[str, float]:
    """The counters of one precision (letter d, f or h), per cycle."""
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    amounts = {"add": add, "mul": mul, "fma": fma}
    return {name.format(kind + operation): value for operation, value in amounts.items()}


def frames_of(
    metrics: Mapping[str, float], *, capability: str = "8.0", texts: Mapping[str, str] | None = None
) -> tuple[Frame, Frame, Frame]:
    """The frames of a report with one launch that has these metrics."""
    held = [Metric(0, name, value) for name, value in metrics.items()]
    named = {GPU: "Test GPU", **(texts or {})}
    held += [Metric(0, name, float("nan"), text=text) for name, text in named.items()]
    launch = Launch(0, "void ns::kernel<float>(float *)", capability=capability)
    return launches_frame([launch], held), Frame.of_rows(METRICS, held), Frame.empty(RULES)


def roofline_of(
    metrics: Mapping[str, float], *, capability: str = "8.0", clock: str | float = "profiled"
) -> RooflineLaunch:
    """The roofline of one launch that has these metrics."""
    (found,) = launch_rooflines(*frames_of(metrics, capability=capability), clock=clock)
    return found
