"""What is asked and answered over MCP: the end of the input is seen when all was answered, and
lines that are no message are answered, too.

The package mcp drops what it is still working on when its input ends: requests that a program
writes into a pipe and closes would be answered or not by chance. It drops lines that it cannot read
(such as one half of a surrogate pair), and who waits for their answers waits without end.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

LONGEST_WAIT_S = 600.0
_CANCELLED = "notifications/cancelled"


class _Unanswered:
    """The ids of the requests that are not answered yet."""

    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._all_answered = anyio.Event()

    def asked(self, message: Any) -> None:
        """A request was read, or a notification that one is not waited for any more."""
        if getattr(message, "method", None) == _CANCELLED:
            self._done((message.params or {}).get("requestId"))
        elif hasattr(message, "method") and hasattr(message, "id"):
            self._ids.add(message.id)

    def answered(self, message: Any) -> None:
        """A message was written."""
        if not hasattr(message, "method"):
            self._done(getattr(message, "id", None))

    def _done(self, number: object) -> None:
        self._ids.discard(number)
        if not self._ids:
            self._all_answered.set()
            self._all_answered = anyio.Event()

    async def wait(self) -> None:
        """Until all is answered, or for LONGEST_WAIT_S."""
        with anyio.move_on_after(LONGEST_WAIT_S):
            while self._ids:
                await self._all_answered.wait()


class _Stream:
    """A stream of the package mcp, with what it offers beside messages."""

    def __init__(self, stream: Any, unanswered: _Unanswered) -> None:
        self._stream = stream
        self._unanswered = unanswered

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> _Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.aclose()


class _Requests(_Stream):
    """Messages in; those that cannot be read are answered at once."""

    def __init__(self, stream: Any, unanswered: _Unanswered, answers: Any) -> None:
        super().__init__(stream, unanswered)
        self._answers = answers

    async def receive(self) -> SessionMessage:
        while True:
            try:
                read: SessionMessage | Exception = await self._stream.receive()
            except anyio.EndOfStream:
                await self._unanswered.wait()
                raise
            if not isinstance(read, Exception):
                self._unanswered.asked(read.message)
                return read
            if answer := _refusal(read):
                await self._answers.send(answer)

    def __aiter__(self) -> _Requests:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Answers(_Stream):
    """Messages out."""

    async def send(self, message: SessionMessage) -> None:
        await self._stream.send(message)
        self._unanswered.answered(message.message)


def until_answered(reading: Any, writing: Any) -> tuple[Any, Any]:
    """The two streams of a transport, of which the first ends when all is answered on the other."""
    unanswered = _Unanswered()
    return _Requests(reading, unanswered, writing), _Answers(writing, unanswered)


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
