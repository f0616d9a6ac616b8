"""What is asked and answered over MCP: the end of the input is heard when all was answered.

The package mcp drops what it is still working on when its input ends: requests that a program
writes into a pipe and closes would be answered or not by chance.
"""

from __future__ import annotations

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
    """Messages in."""

    async def receive(self) -> SessionMessage | Exception:
        try:
            read: SessionMessage | Exception = await self._stream.receive()
        except anyio.EndOfStream:
            await self._unanswered.wait()
            raise
        if not isinstance(read, Exception):
            self._unanswered.asked(read.message)
        return read

    def __aiter__(self) -> _Requests:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
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
    return _Requests(reading, unanswered), _Answers(writing, unanswered)
