"""What a trace says of itself around its events: start of its clock, ranks, GPUs, versions.

The header may name users, hosts, jobs and paths: only the fields below are ever read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nsightpy.readers.torch.columns import whole

_KNOWN = (
    *("schemaVersion", "baseTimeNanoseconds", "deviceProperties", "distributedInfo"),
    *("cuda_runtime_version", "hip_runtime_version"),
)
_ENDS = re.compile(rb"[\s,]*$")


@dataclass(frozen=True)
class Header:
    """The wanted part of a header, GPUs as it lists them; None and empty where it does not say."""

    schema_version: str = ""
    base_ns: int = 0
    gpus: tuple[Mapping[str, Any], ...] = ()
    rank: int | None = None
    runtime: str = ""
    torn: bool = False

    @classmethod
    def of(cls, before: bytes, after: bytes) -> Header:
        """The header in the texts before and after the events."""
        fields, torn = _fields(before, after)
        distributed = fields.get("distributedInfo")
        jobs: Mapping[str, Any] = distributed if isinstance(distributed, dict) else {}
        given = fields.get("deviceProperties")
        listed = given if isinstance(given, list) else []
        cuda, hip = (fields.get(f"{api}_runtime_version") for api in ("cuda", "hip"))
        return cls(
            schema_version=str(fields.get("schemaVersion", ""))[:20],
            base_ns=whole(fields.get("baseTimeNanoseconds", 0)),
            gpus=tuple(gpu for gpu in listed if isinstance(gpu, dict)),
            rank=_number(jobs.get("rank")),
            runtime=_version("CUDA", cuda) or _version("HIP", hip),
            torn=torn,
        )


def _fields(before: bytes, after: bytes) -> tuple[dict[str, Any], bool]:
    """The known fields, and whether the header is damaged: then there are none."""
    head = _ENDS.sub(b"", before.removeprefix(b"\xef\xbb\xbf"))
    tail = after.lstrip(b", \t\r\n")
    if not head:  # only a list of events
        return {}, False
    if head.startswith(b"{") and tail in (b"", b"}"):
        tail = b"}"
    join = b"," if head.strip() != b"{" and tail.strip() != b"}" else b""
    text = (head + join + tail).decode("utf-8", "replace")
    try:
        fields = json.loads(text, object_pairs_hook=_merged, strict=False)
        return {name: fields[name] for name in _KNOWN if name in fields}, False
    except (ValueError, RecursionError, TypeError):
        return {}, True


def _merged(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys may repeat: objects are put together, of values the first one that
    says anything counts."""
    merged: dict[str, Any] = {}
    for name, value in pairs:
        earlier = merged.get(name)
        if isinstance(earlier, dict) and isinstance(value, dict):
            merged[name] = value | earlier
        elif earlier in (None, "", []):
            merged[name] = value
    return merged


def _number(value: Any) -> int | None:
    number = whole(value, -1) if isinstance(value, int | str) else -1
    return number if number >= 0 else None


def _version(name: str, value: Any) -> str:
    """A runtime's version number, 12060, as CUDA 12.6; HIP writes 60342134 for 6.3.42134."""
    number = whole(value, 0) if isinstance(value, int | str) else 0
    if number <= 0:
        return ""
    if number >= 10_000_000:
        return f"{name} {number // 10_000_000}.{number // 100_000 % 100}"
    return f"{name} {number // 1000}.{number % 1000 // 10}"
