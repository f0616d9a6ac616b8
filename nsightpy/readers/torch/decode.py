"""The events of a piece of a trace; what is damaged is mended or left out, and counted.

Early traces hold quotation marks that nobody escaped (pytorch/pytorch#146900), and words such as
nan where JSON has numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec

from nsightpy.readers.torch.events import STRUCTS, Event
from nsightpy.readers.torch.pieces import BETWEEN

_BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|id|s|bp|args)"\s*:)')
_NO_NUMBER = re.compile(
    rb"([:\[,]\s*)-?(?:nan|inf(?:inity)?)(?:\(\w*\))?(?=\s*[,}\]])", re.IGNORECASE
)
# A quotation mark that opens a string follows one of {[,: and one that closes it comes before one
# of ]},: - all others stand inside of a string.
_INNER = re.compile(rb'(?<![\\{\[,:\s])"(?!\s*[\]},:])|(?<=[^{\[,:\s]\s)"(?!\s*[\]},:])|"(?=\s\w)')
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_CONTROL = re.compile(rb"[\x00-\x1f]")


class EventDecoder:
    """Decodes pieces of a trace as events of one kind (Event or ExactEvent).

    It counts the events that were `mended` and those that are `lost`, the last for a `reason`.
    """

    def __init__(self, kind: type[Event]) -> None:
        self.kind = kind
        self.mended = self.lost = 0
        self.reason = ""

    def events(self, text: bytes) -> list[Any]:
        """The events of a piece."""
        many: Any = list[self.kind]  # type: ignore[name-defined]
        try:
            events: list[Any] = msgspec.json.decode(b"[" + text + b"]", type=many)
        except _NO_JSON:
            return list(self._one_by_one(text))
        return events

    def _one_by_one(self, text: bytes) -> Iterator[Any]:
        starts = (0, *(match.end() for match in _BOUNDARY.finditer(text)))
        for start, end in pairwise((*starts, len(text))):
            piece = text[start:end].rstrip(BETWEEN)
            try:
                yield msgspec.json.decode(piece, type=self.kind)
            except _NO_JSON as error:
                event = self._mended(piece)
                if event is not None:
                    yield event
                else:
                    self.lost += 1
                    self.reason = str(error)[:200]

    def _mended(self, text: bytes) -> Any | None:
        """One event that is no JSON."""
        for mend in (_valid, _escaped):
            with suppress(*_NO_JSON):
                event = msgspec.json.decode(mend(text), type=self.kind)
                self.mended += 1
                return event
        return None


def decoded_arguments(kind: str, raws: Sequence[msgspec.Raw]) -> tuple[list[Any], int]:
    """The arguments of events of one kind, and how many had to be mended; what is no object has
    none."""
    struct = STRUCTS[kind]
    many: Any = list[struct]  # type: ignore[valid-type]
    with suppress(*_NO_JSON):
        return msgspec.json.decode(b"[" + b",".join(raws) + b"]", type=many), 0
    mended = [_arguments(bytes(raw), struct) for raw in raws]
    return [arguments for arguments, _ in mended], sum(was_mended for _, was_mended in mended)


def _arguments(raw: bytes, struct: type[Any]) -> tuple[Any, bool]:
    """The arguments of one event, and whether they had to be mended."""
    for mend in (bytes, _valid):
        try:
            return msgspec.json.decode(mend(raw), type=struct), mend is not bytes
        except msgspec.ValidationError:
            return struct(), mend is not bytes
        except _NO_JSON:
            continue
    return struct(), True


def _valid(text: bytes) -> bytes:
    """Without what JSON has no word for: nan, control characters, bytes that are no UTF-8."""
    plain = text.decode("utf-8", "replace").encode()
    return _NO_NUMBER.sub(rb"\1null", _CONTROL.sub(b" ", plain))


def _escaped(text: bytes) -> bytes:
    """With a backslash before every quotation mark that neither opens nor closes a string."""
    return _INNER.sub(rb"\"", _valid(text))
