"""nsightpy: where the GPU time goes, from Nsight Systems and Nsight Compute reports.

    job = nsightpy.open("job/", iteration="steady")  # reports of one job, and what of them
    job.kernels(by="rank")                           # what `nsightpy kernels --by rank` prints
    job.events("kernels")                            # a DataFrame: all ranks on one clock
    nsightpy.kernels("train.nsys-rep", top=10)       # the same without a job

Every command of the command line is a function here of the same name and parameters (`-` becomes
`_`); what a command draws, NAME_figure makes. Everything is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

from nsightpy.command_table import COMMANDS

__version__ = "0.3.0"

_MODULES = {
    "open": "nsightpy.job",
    "Job": "nsightpy.job",
    "open_report": "nsightpy.reports.opening",
}
_COMMANDS = {each.function: each for each in COMMANDS.values()}
_FIGURES = {f"{each.function}_figure": each for each in COMMANDS.values() if each.figure}
__all__ = ["errors", *_MODULES, *_COMMANDS, *_FIGURES]  # noqa: PLE0604 (strings, all of them)


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("nsightpy.errors")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name in _COMMANDS:
        return _COMMANDS[name].load()
    if name in _FIGURES:
        return _FIGURES[name].load().figure
    raise AttributeError(f"module 'nsightpy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(["__version__", *__all__])
