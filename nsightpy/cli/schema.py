"""nsightpy schema"""

from __future__ import annotations

import click


@click.command("schema")
@click.argument("command", metavar="[COMMAND]", required=False)
def command(command: str | None) -> None:
    """Print the JSON Schema of what COMMAND answers with --format json; without one, their names.

    Every document has schema, tool_version, inputs, rows, notes, total_rows, truncated,
    abstentions and untrusted; docs/agents.md says what they mean. `error` is what is said on stderr
    of a failure.
    """
    import json

    from nsightpy.commands.schema import described, schema

    if command is None:
        click.echo("\n".join(described()))
    else:
        click.echo(json.dumps(schema(command), indent=2))
