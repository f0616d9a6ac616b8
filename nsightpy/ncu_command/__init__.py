"""From a plan to what is typed: ncu's arguments, shell lines, batch scripts."""

from nsightpy.ncu_command.runs import (
    APPLICATION as APPLICATION,
    Options as Options,
    Run as Run,
    argv as argv,
    shell_line as shell_line,
)
from nsightpy.ncu_command.scripts import SCRIPTS as SCRIPTS, Job as Job, script as script
