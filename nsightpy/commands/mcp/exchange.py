"""What is asked and answered over MCP: the end of the input is seen when all was answered, and
lines that are no message are answered, too.

The package mcp drops what it is still working on when its input ends: requests that a program
writes into a pipe and closes would be answered or not by chance. It drops lines that it cannot read
(such as one half of a surrogate pair), and who waits for their answers waits without end.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

LONGEST_WAIT_S, PAUSE_S = 600.0, 0.01
_CANCELLED = "notifications/cancelled"


async def exchange(
    reading: Any, writing: Any, serve: Callable[[Any, Any], Awaitable[None]]
) -> None:
    """Serve what is asked on one stream of a transport, and end when all is answered on the other.

    Messages that cannot be read are answered at once.
    """
    unanswered: set[object] = set()
    requests, asked = anyio.create_memory_object_stream[Any]()
    answered, answers = anyio.create_memory_object_stream[Any]()

    async def ask() -> None:
        async with requests:
            async for read in reading:
                if not isinstance(read, Exception):
                    _ask(read.message, unanswered)
                    await requests.send(read)
                elif refusal := _refusal(read):
                    await writing.send(refusal)
            with anyio.move_on_after(LONGEST_WAIT_S):
                while unanswered:
                    await anyio.sleep(PAUSE_S)

    async def answer() -> None:
        async for sent in answers:
            await writing.send(sent)
            if not hasattr(sent.message, "method"):
                unanswered.discard(getattr(sent.message, "id", None))

    async with reading, writing, anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(answer)
        async with answered:
            await serve(asked, answered)


def _ask(message: Any, unanswered: set[object]) -> None:
    """A request waits for its answer, unless a notification says that nobody does any more."""
    if getattr(message, "method", None) == _CANCELLED:
        unanswered.discard((message.params or {}).get("requestId"))
    elif hasattr(message, "method") and hasattr(message, "id"):
        unanswered.add(message.id)


def _refusal(error: Exception) -> SessionMessage | None:
    """The answer to a line that is no message; None for an empty one.

    It has the id of what was asked, where that can be read: https://www.jsonrpc.org/specification.
    """
    import mcp_types as types
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    given = [each["input"] for each in error.errors()] if isinstance(error, ValidationError) else []
    if given and isinstance(given[0], str) and not given[0].strip():
        return None
    asked: Any = next((each for each in given if isinstance(each, dict)), None)
    code, said = types.INVALID_REQUEST, "the line is no message of JSON-RPC"
    if asked is None and given and isinstance(given[0], str):
        code, said = types.PARSE_ERROR, "the line cannot be read as JSON"
        with suppress(ValueError, RecursionError):
            asked = json.loads(given[0])
    number = asked.get("id") if isinstance(asked, dict) else None
    known = isinstance(number, int | str) and not isinstance(number, bool)
    answer = types.JSONRPCError(
        jsonrpc="2.0",
        id=number if known and str(number).isprintable() else None,
        error=types.ErrorData(code=code, message=said),
    )
    return SessionMessage(answer)
