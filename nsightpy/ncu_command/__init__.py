"""From a plan to what is typed: ncu's arguments, shell lines, response files, batch scripts."""

from nsightpy.ncu_command.filters import NameFilter
from nsightpy.ncu_command.runs import (
    APPLICATION,
    Options,
    Run,
    arguments,
    argv,
    response_file,
    shell_line,
)
from nsightpy.ncu_command.scripts import SCRIPTS, Job, Launcher, script

__all__ = [
    "APPLICATION",
    "SCRIPTS",
    "Job",
    "Launcher",
    "NameFilter",
    "Options",
    "Run",
    "arguments",
    "argv",
    "response_file",
    "script",
    "shell_line",
]
