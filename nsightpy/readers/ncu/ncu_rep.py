"""Read .ncu-rep through NVIDIA's ncu_report: the PyPI package, or that of an Nsight Compute.

The library leaks what it loads and holds the GIL: a report is loaded once per process, and many
reports are read in many processes. It does not say when a file is cut short: ncu_file does.
"""

import functools
import glob
import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from math import isnan, nan
from pathlib import Path
from typing import Any

from nsightpy.errors import ReportError, ToolNotFoundError
from nsightpy.frames import METRICS, RULES, Frame
from nsightpy.readers.ncu import tables
from nsightpy.readers.ncu.file import FileFacts, file_facts
from nsightpy.readers.tools.file_check import file_errors

MODULE = "ncu_report"
INSTALLED = (
    "/opt/nvidia/nsight-compute/*/extras/python",
    "/usr/local/cuda*/nsight-compute-*/extras/python",
    "/opt/nvidia/hpc_sdk/Linux_*/*/profilers/Nsight_Compute/extras/python",
    "/usr/lib/python3/dist-packages",
    r"C:\Program Files\NVIDIA Corporation\Nsight Compute *\extras\python",
)
THREE_WAYS = (
    "three ways out: `pip install 'nsightpy[ncu]'` (NVIDIA's reader; no GPU needed); or install "
    "Nsight Compute, or set NSIGHTPY_NCU to its ncu; or run `ncu --import {name} --csv --page raw "
    "> {stem}.csv` where ncu is, and give the CSV file."
)
_NEWER = (
    "copy it again; if it was made by a newer Nsight Compute, `pip install --upgrade ncu-report`."
)
_STRING, _NUMBERS = 2, (3, 4, 5, 6)
_RULE_TYPES = {1: "ok", 2: "optimization", 3: "warning", 4: "error"}
_SPEEDUPS = {1: "local", 2: "global"}


def read(path: Path) -> tables.NcuTables:
    """All frames of a report; missing values have no row.

    Raises ReportError when it is no whole report, ToolNotFoundError when nothing here reads it.
    """
    facts = file_facts(path)
    module = find_module()
    if module is None:
        problem = "needs NVIDIA's ncu_report to be read, which was not found"
        ways = THREE_WAYS.format(name=path.name, stem=path.stem)
        raise ToolNotFoundError(path, problem, ways)
    try:
        return _tables(path, facts, _load(module, path))
    except (TypeError, ValueError, RuntimeError, SystemError) as error:
        # what the library does when the inside of a report is damaged
        raise ReportError(path, f"is damaged: {error}", _NEWER) from error


# Kept by the process, as sys.modules keeps every module.
@functools.cache
def find_module() -> Any | None:
    """The ncu_report module: the package, else the one of an installed Nsight Compute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for folder in ("", *_folders()):
            sys.path[:0] = [folder] if folder else []
            try:
                return importlib.import_module(MODULE)
            except (ImportError, OSError):
                sys.modules.pop(MODULE, None)
            finally:
                if folder:
                    sys.path.remove(folder)
    return None


def _folders() -> Iterator[str]:
    """Folders of installed Nsight Computes: next to the ncu in use first, then newest first."""
    from nsightpy.readers.tools.nvidia_tools import find_tool

    try:
        ncu = Path(os.path.realpath(find_tool("ncu").path))
        yield from (str(parent / "extras" / "python") for parent in ncu.parents[:4])
    except ToolNotFoundError:
        pass
    for pattern in INSTALLED:
        yield from sorted(glob.glob(pattern), reverse=True)  # noqa: PTH207


def _load(module: Any, path: Path) -> list[Any]:
    """The results of a report in ncu's order, loaded once per process and state of the file."""
    with file_errors(path):
        state = path.stat()
    try:
        return _loaded(module, str(path.absolute()), state.st_mtime_ns, state.st_size)
    except Exception as error:  # whatever the library raises
        raise ReportError(path, f"cannot be loaded: {error}", _NEWER) from error


# The library never frees what it loaded: the same report again would take its memory again.
@functools.lru_cache(maxsize=64)
def _loaded(module: Any, path: str, _time: int, _size: int) -> list[Any]:
    context = module.load_report(path)
    return [part[index] for part in context for index in range(len(part))]


def _tables(path: Path, facts: FileFacts, actions: list[Any]) -> tables.NcuTables:
    if not actions:
        raise ReportError(
            path,
            "holds no results: nothing was profiled, or it is no Nsight Compute report",
            "profile again; `ncu` names the kernels that it profiles.",
        )
    launches: list[tables.Launch] = []
    metrics: list[tables.Metric] = []
    rules: list[tables.Rule] = []
    kinds: dict[str, tuple[int, str]] = {}
    for number, action in enumerate(actions):
        process = facts.processes[number] if number < len(facts.processes) else (0, "")
        launches.append(_launch(number, action, process))
        metrics += _metrics(number, action, kinds)
        rules += _rules(number, action)
    empty = len(actions) - len({metric.launch for metric in metrics if not isnan(metric.value)})
    if empty == len(actions):
        raise ReportError(path, "has results without a single metric: it is damaged", _NEWER)
    return tables.NcuTables(
        tables.launches_frame(launches, metrics),
        Frame.of_rows(METRICS, metrics),
        Frame.of_rows(RULES, rules),
        facts.tool_version,
        (f"{empty} of {len(actions)} results hold no metrics",) if empty else (),
    )


def _metrics(
    number: int, action: Any, kinds: dict[str, tuple[int, str]]
) -> Iterator[tables.Metric]:
    """The metrics of a result; kinds and units are asked for once."""
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if metric is None or not metric.has_value():
            continue
        if name not in kinds:
            kinds[name] = metric.kind(), tables.stable_unit(name, metric.unit())
        kind, unit = kinds[name]
        if kind in _NUMBERS:
            if not isnan(value := metric.as_double()):
                yield tables.Metric(number, name, value, unit)
        elif kind == _STRING:
            yield tables.Metric(number, name, nan, text=metric.as_string())


def _launch(number: int, action: Any, process: tuple[int, str]) -> tables.Launch:
    bases = (action.NameBase_DEMANGLED, action.NameBase_FUNCTION, action.NameBase_MANGLED)
    demangled, function, mangled = (action.name(base) or "" for base in bases)
    state = action.nvtx_state()
    domains = [state.domain_by_id(each) for each in state.domains()] if state else []
    return tables.Launch(
        number,
        demangled or function or mangled or "(unnamed)",
        base_name=function,
        mangled_name=mangled,
        pid=process[0],
        process=process[1],
        nvtx=tables.nvtx_text({d.name(): list(d.push_pop_ranges()) for d in domains}),
    )


def _rules(number: int, action: Any) -> Iterator[tables.Rule]:
    try:
        results = action.rule_results_as_dicts()
    except AttributeError:  # ncu_report before 2024
        return
    for result in results:
        message = result["rule_message"] or {}
        speedup = result.get("speedup_estimation") or {}
        yield tables.Rule(
            number,
            result["rule_identifier"],
            result["section_identifier"],
            _RULE_TYPES.get(int(message.get("type", 0)), ""),
            message.get("title", ""),
            tables.plain_message(message.get("message", "")),
            float(speedup.get("speedup", "nan")),
            _SPEEDUPS.get(int(speedup.get("type", 0)), ""),
        )
