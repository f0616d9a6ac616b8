"""From a plan to what is typed: ncu's arguments, shell lines, response files, batch scripts."""

from nsightpy.ncu_command.filters import NameFilter as NameFilter
from nsightpy.ncu_command.runs import (
    APPLICATION as APPLICATION,
    Options as Options,
    Run as Run,
    arguments as arguments,
    argv as argv,
    response_file as response_file,
    shell_line as shell_line,
)
from nsightpy.ncu_command.scripts import (
    SCRIPTS as SCRIPTS,
    Job as Job,
    Launcher as Launcher,
    script as script,
)
