"""The events of a piece of a trace; what is damaged is mended or left out, and counted.

Early traces hold quotation marks that nobody escaped (pytorch/pytorch#146900), and words such as
nan where JSON has numbers only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from nsightpy.readers.torch.events import STRUCTS, Event

_BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|s|bp|args)"\s*:)')
_NO_NUMBER = re.compile(
    rb"([:\[,]\s*)-?(?:nan|inf(?:inity)?)(?:\(\w*\))?(?=\s*[,}\]])", re.IGNORECASE
)
# A quotation mark that opens a string follows one of {[,: and one that closes it comes before one
# of ]},: - all others stand inside of a string.
_INNER = re.compile(rb'(?<![\\{\[,:\s])"(?!\s*[\]},:])|(?<=[^{\[,:\s]\s)"(?!\s*[\]},:])|"(?=\s\w)')
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_CONTROL = re.compile(rb"[\x00-\x1f]")


@dataclass
class Damage:
    """How many events were mended or left out, and where the first one stands (bytes)."""

    mended: int = 0
    lost: int = 0
    first_lost: int = -1
    reason: str = ""


class EventDecoder:
    """Decodes pieces of a trace as events of one kind (Event or ExactEvent)."""

    def __init__(self, kind: type[Event]) -> None:
        self.kind = kind
        self.damage = Damage()
        many: Any = list[kind]  # type: ignore[valid-type]
        self._many: msgspec.json.Decoder[Any] = msgspec.json.Decoder(many)
        self._one: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

    def events(self, text: bytes, offset: int) -> list[Any]:
        """The events of a piece that begins at this offset of the file."""
        try:
            events: list[Any] = self._many.decode(b"[" + text + b"]")
        except _NO_JSON:
            return list(self._singly(text, offset))
        return events

    def _singly(self, text: bytes, offset: int) -> Iterator[Any]:
        for start, end in self._spans(text):
            piece = text[start:end]
            try:
                yield self._one.decode(piece)
            except _NO_JSON as error:
                event = self._mended(piece)
                if event is None:
                    self._lose(offset + start, error)
                else:
                    yield event

    def _spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        start = 0
        for match in _BOUNDARY.finditer(text):
            yield start, match.start() + 1
            start = match.end()
        yield start, len(text)

    def _lose(self, place: int, error: Exception) -> None:
        self.damage.lost += 1
        if self.damage.first_lost < 0:
            self.damage.first_lost = place
            self.damage.reason = str(error)[:200]

    def _mended(self, text: bytes) -> Any | None:
        """One event that is no JSON, or holds a value of another type than expected."""
        for mend in (bytes, _valid, _escaped):
            whole = mend(text)
            try:
                event: Any = self._one.decode(whole)
            except (msgspec.ValidationError, UnicodeDecodeError):
                event = self._retyped(whole)
            except (msgspec.MsgspecError, RecursionError):
                continue
            if event is not None:
                self.damage.mended += mend is not bytes
                return event
        return None

    def _retyped(self, text: bytes) -> Any | None:
        """An event some of whose fields are of a type that they never have: those are dropped."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict):
            return None
        while True:
            try:
                return self._one.decode(json.dumps(fields).encode())
            except msgspec.ValidationError as error:
                path = re.search(r"`\$\.([^`]+?)(?:\[|`)", str(error))
                if path is None or path[1] not in fields:
                    return None
                del fields[path[1]]
            except (msgspec.MsgspecError, ValueError, RecursionError):
                return None


def decoded_arguments(kind: str, raws: Sequence[msgspec.Raw]) -> tuple[list[Any], int]:
    """The arguments of events of one kind, and how many had to be mended; what is no object has
    none."""
    struct = STRUCTS[kind]
    many: Any = list[struct]  # type: ignore[valid-type]
    try:
        return msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=many), 0
    except _NO_JSON:
        pass
    arguments, mended = [], 0
    for raw in map(bytes, raws):
        try:
            argument = msgspec.json.decode(raw, type=struct)
        except msgspec.ValidationError:
            argument = struct()
        except _NO_JSON:
            mended += 1
            argument = _mended_arguments(raw, struct)
        arguments.append(argument)
    return arguments, mended


def _mended_arguments(raw: bytes, struct: type[Any]) -> Any:
    with suppress(*_NO_JSON):
        return msgspec.json.decode(_valid(raw), type=struct)
    return struct()


def _valid(text: bytes) -> bytes:
    """Without what JSON has no word for: nan, control characters, bytes that are no UTF-8."""
    plain = text.decode("utf-8", "replace").encode()
    return _NO_NUMBER.sub(rb"\1null", _CONTROL.sub(b" ", plain))


def _escaped(text: bytes) -> bytes:
    """With a backslash before every quotation mark that neither opens nor closes a string."""
    return _INNER.sub(rb'\\"', _valid(text))
