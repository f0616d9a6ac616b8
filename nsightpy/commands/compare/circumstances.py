"""What a run ran on and with, as far as its reports say; no names of hosts and users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsightpy.analysis.iterations.steady import Iterations
from nsightpy.commands.info.command import gpu_text, used_gpus
from nsightpy.reports.system import SystemReport
from nsightpy.units import format_count


def circumstances_of(
    report: SystemReport, places: Sequence[tuple[int, int]], iterations: Mapping[int, Iterations]
) -> dict[str, str]:
    """The circumstances of one report, by name; empty texts where it does not say."""
    devices = report.frame("devices")
    clocks = sorted({clock for clock in devices.ints("clock_hz").tolist() if clock > 0})
    sources = dict.fromkeys(process.source for process in iterations.values() if process.source)
    return {
        "GPU": gpu_text(used_gpus(report, places)),
        "maximum SM clock": ", ".join(f"{clock / 1e6:.0f} MHz" for clock in clocks),
        "driver": report.session.driver,
        "profiler": report.tool_version,
        "iterations by": ", ".join(sources),
    }


def of_run(parts: Sequence[Mapping[str, str]], ranks: int, devices: int) -> dict[str, str]:
    """Those of all reports of a run; GPUs are counted."""
    texts = {"ranks": format_count(ranks) if ranks else "", "devices": format_count(devices)}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if part.get(name)]
        if name == "GPU":
            texts[name] = _gpus(values)
        else:
            texts[name] = ", ".join(sorted(set(values)))
    return texts


def _gpus(texts: Sequence[str]) -> str:
    """The GPUs of several reports, equal ones counted once: how many there are is `devices`."""
    plain = {
        name.split("x ", 1)[-1] if name[:1].isdigit() else name
        for text in texts
        for name in text.split(", ")
    }
    return ", ".join(sorted(plain))
