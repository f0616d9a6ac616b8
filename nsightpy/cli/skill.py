"""nsightpy skill"""

from __future__ import annotations

import click


@click.command("skill")
def command() -> None:
    """Print how to go from a report to a conclusion with these commands, for agents (SKILL.md)."""
    from nsightpy.commands.skill import skill

    click.echo(skill(), nl=False)
