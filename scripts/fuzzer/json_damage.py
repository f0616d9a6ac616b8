"""Damage to the text of JSON, and to what packs it."""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections.abc import Callable

from fuzzer.values import HOSTILE

TOKENS = (
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "true",
        '"12"',
        '"1.5"',
        '"1,5"',
        '"abc"',
        "{}",
        "[]",
    ),
    *("1e400", "-1e400", "1e-400", "9" * 400, "-0", "1.", "01", "0x1F", "1_000", "-5", "1e15"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" + "0" * 25),
)


def numbers(text: str, rng: random.Random) -> str:
    """Some numbers of one key, or all, are something else."""
    key = rng.choice(("ts", "dur", "pid", "tid", "stream", "device", "correlation", "bytes"))
    token, share = rng.choice(TOKENS), rng.choice((0.01, 0.3, 1.0))
    pattern = re.compile(rf'("{key}":\s*)([-0-9.]+)')
    return pattern.sub(lambda m: m[1] + (token if rng.random() < share else m[2]), text)


def twice(text: str, rng: random.Random) -> str:
    """A key that is there twice."""
    key = rng.choice(("ts", "dur", "cat", "args", "ph", "pid", "name", "traceEvents"))
    other = rng.choice(("1", '"kernel"', "[]", "{}", "null", '"X"'))
    return text.replace(f'"{key}":', f'"{key}": {other}, "{key}":', rng.choice((1, 50, 10**9)))


def lost(text: str, rng: random.Random) -> str:
    """A key that is not there, everywhere."""
    key = rng.choice(("ts", "dur", "cat", "args", "ph", "pid", "tid", "name", "stream", "device"))
    return text.replace(f'"{key}":', f'"{key}_":')


def kinds(text: str, rng: random.Random) -> str:
    """Events of one kind say that they are of another."""
    names = ('"X"', '"B"', '"E"', '"M"', '"f"', '"s"', '"i"', '"C"', '"kernel"', '"gpu_memcpy"')
    return text.replace(rng.choice(names), rng.choice((*names, '""', "5")))


def encoding(text: str, rng: random.Random) -> str:
    return rng.choice(("\ufeff", "  \r\n", "\x00", "// x\n", "var a = ")) + text


def line_ends(text: str, rng: random.Random) -> str:
    return text.replace(",", rng.choice((",\r\n", ",\r", ",\u2028", ",\t", ",\x0b", ",,")))


def trailing(text: str, rng: random.Random) -> str:
    return text + rng.choice((text[:5000], "]", "}", "x", "\x00" * 100, ",{}", "\n{}", " " * 10**6))


def cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


def nested(text: str, rng: random.Random) -> str:
    opening = rng.choice(("[", '{"a":', '[{"args":'))
    return text.replace('"args":', f'"args": {opening * rng.choice((900, 200_000))} "x":', 1)


def keys(text: str, rng: random.Random) -> str:
    """An object of very many keys, or very long ones."""
    many = ",".join(f'"k{n}":{n}' for n in range(rng.choice((10, 100_000))))
    return text.replace('"args": {', f'"args": {{{many},', 1)


def escapes(text: str, rng: random.Random) -> str:
    hostile = rng.choice(
        (json.dumps(HOSTILE)[1:-1], r"\ud800", r"\u0000", r"\x41", "\\", r"\udc00")
    )
    return text.replace('"name": "', f'"name": "{hostile}', rng.choice((1, 10**9)))


TOPS = (
    *("[]", "{}", "null", "5", '""', '{"traceEvents": {}}', '{"traceEvents": [[]]}'),
    '{"traceEvents": [1, null, "x"]}',
)


def top(text: str, rng: random.Random) -> str:
    """Something else around the events, or instead of them."""
    return rng.choice((f"[{text}]", f'{{"a": {text}}}', *TOPS))


TEXTS: tuple[Callable[[str, random.Random], str], ...] = (
    *(numbers, numbers, numbers, twice, lost, kinds, encoding, line_ends, trailing, cut, nested),
    *(keys, escapes, top),
)


def _bomb(data: bytes, rng: random.Random) -> bytes:
    """A small file that becomes gigabytes."""
    unit = rng.choice((b" ", b"[", b"\0", b'{"a":1},', b'"', b"0"))
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = rng.choice((b'{"traceEvents": [', b'{"traceEvents": [{"ph": "X", "name": "', b""))
    block = unit * (2**24 // len(unit))
    parts = [packer.compress(head)]
    parts += [packer.compress(block) for _ in range(rng.choice((8, 128)))]
    return b"".join([*parts, packer.flush()])


def repacked(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """Packed data, with the packing damaged."""
    kind = rng.randrange(9)
    if kind == 0:
        return data + rng.randbytes(rng.choice((1, 100, 5000))), "gz trailing"
    if kind == 1:
        return data + data, "gz twice"
    if kind == 2:
        return data[:-8] + rng.randbytes(8), "gz checksum"
    if kind == 3:
        return data[: rng.randrange(len(data))], "gz cut"
    if kind == 4:
        return _bomb(data, rng), "gz bomb"
    if kind == 5:
        return gzip.compress(data), "gz in gz"
    if kind == 6:
        return gzip.decompress(data), "not packed"
    if kind == 7:
        return data[:10] + b"\x00" * 10 + data[20:], "gz head"
    return gzip.decompress(data).decode("utf-8", "replace").encode("utf-16"), "utf-16"


def trace_text(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A trace with its text damaged, packed as it was."""
    packed = data[:2] == b"\x1f\x8b"
    if packed and rng.random() < 0.3:
        return repacked(data, rng)
    text = (gzip.decompress(data) if packed else data).decode("utf-8", "replace")
    done = []
    for _ in range(rng.choice((1, 1, 2))):
        act = rng.choice(TEXTS)
        text = act(text, rng)
        done.append(act.__name__)
    changed = text.encode(rng.choice(("utf-8",) * 8 + ("utf-16", "latin-1")), "replace")
    return (gzip.compress(changed, 1) if packed else changed), ", ".join(done)
