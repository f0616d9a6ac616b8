"""nsightpy report: of some reports, or of runs before and after."""

from nsightpy.cli.declared import click_command
from nsightpy.cli.sides import WithSides
from nsightpy.commands.report.command import report

command = click_command(report, kind=WithSides)
