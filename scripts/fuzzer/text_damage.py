"""Damage to any bytes, and to texts: traces, baselines, memory snapshots."""

import contextlib
import gzip
import json
import pickle
import random
import re
import zlib
from collections.abc import Callable
from typing import Any

from fuzzer.values import DEEP, HOSTILE, json_value

TOKENS = (
    *("NaN", "-Infinity", "null", "true", '"12"', '"1.5"', '"1,5"', '"abc"', "{}", "[]", "-5"),
    *("1e400", "1e-400", "9" * 400, "-0", "1.", "01", "0x1F", "1_000", "1e15", "1" + "0" * 25),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809"),
)
NUMBERS = ("ts", "dur", "pid", "tid", "stream", "device", "correlation", "bytes")
KEYS = (*NUMBERS, "cat", "args", "ph", "name", "traceEvents")
KINDS = ('"X"', '"B"', '"E"', '"M"', '"f"', '"s"', '"i"', '"C"', '"kernel"', '"gpu_memcpy"')
TOPS = (
    *("[]", "{}", "null", "5", '""', '{"traceEvents": {}}', '{"traceEvents": [[]]}'),
    '{"traceEvents": [1, null, "x"]}',
)
Act = Callable[[str, random.Random], str]


def numbers(text: str, rng: random.Random) -> str:
    """Some numbers of one key, or all, are something else."""
    token, share = rng.choice(TOKENS), rng.choice((0.01, 0.3, 1.0))
    pattern = re.compile(rf'("{rng.choice(NUMBERS)}":\s*)([-0-9.]+)')
    return pattern.sub(lambda m: m[1] + (token if rng.random() < share else m[2]), text)


def keys(text: str, rng: random.Random) -> str:
    """A key is there twice, or nowhere, or beside a hundred thousand others."""
    key, other = rng.choice(KEYS), rng.choice(("1", '"kernel"', "[]", "{}", "null", '"X"'))
    many = ",".join(f'"k{n}":{n}' for n in range(rng.choice((10, 100_000))))
    return rng.choice((
        lambda: text.replace(f'"{key}":', f'"{key}": {other}, "{key}":', rng.choice((1, 50, -1))),
        lambda: text.replace(f'"{key}":', f'"{key}_":'),
        lambda: text.replace('"args": {', f'"args": {{{many},', 1),
    ))()  # fmt: skip


def kinds(text: str, rng: random.Random) -> str:
    """Events of one kind say that they are of another."""
    return text.replace(rng.choice(KINDS), rng.choice((*KINDS, '""', "5")))


def around(text: str, rng: random.Random) -> str:
    """Something before, behind, between or in place of what there is."""
    return rng.choice((
        lambda: rng.choice(("\ufeff", "  \r\n", "\x00", "// x\n", "var a = ")) + text,
        lambda: text.replace(",", rng.choice((",\r\n", ",\u2028", ",\t", ",\x0b", ",,"))),
        lambda: text + rng.choice((text[:5000], "]", "}", "x", "\x00" * 100, ",{}", " " * 10**6)),
        lambda: rng.choice((f"[{text}]", f'{{"a": {text}}}', *TOPS)),
    ))()  # fmt: skip


def cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))]


def nested(text: str, rng: random.Random) -> str:
    opening = rng.choice(("[", '{"a":', '[{"args":'))
    return text.replace('"args":', f'"args": {opening * rng.choice((900, 200_000))} "x":', 1)


def escapes(text: str, rng: random.Random) -> str:
    hostile = (json.dumps(HOSTILE)[1:-1], r"\ud800", r"\u0000", r"\x41", "\\", r"\udc00")
    return text.replace('"name": "', f'"name": "{rng.choice(hostile)}', rng.choice((1, -1)))


TEXTS: tuple[Act, ...] = (
    *(numbers, numbers, numbers, keys, keys, kinds, around, around, cut, nested, escapes),
)


def change(node: Any, rng: random.Random) -> None:
    """Change one value somewhere below a node."""
    while True:
        if isinstance(node, dict) and node:
            key = rng.choice(list(node))
        elif isinstance(node, list) and node:
            key = rng.randrange(len(node))
        else:
            return
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.85:
            node = node[key]
            continue
        if rng.random() < 0.2:
            del node[key]
        else:
            node[key] = json_value(rng)
        return


def changed_values(data: bytes, rng: random.Random) -> str:
    content = json.loads(data)
    events = content.get("traceEvents", []) if isinstance(content, dict) else content
    del events[rng.randrange(1000, 4000) :]
    for _ in range(rng.choice((1, 3, 30))):
        change(rng.choice(events) if events and rng.random() < 0.8 else content, rng)
    return json.dumps(content).replace(json.dumps(DEEP), "[" * 50_000 + "]" * 50_000)


def trace(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A trace with some of its values, its text or its packing damaged, packed as it was."""
    packed = data[:2] == b"\x1f\x8b"
    if packed and rng.random() < 0.15:
        return repacked(data, rng)
    plain, done = gzip.decompress(data) if packed else data, []
    if rng.random() < 0.5:
        text = changed_values(plain, rng)
        done.append("values")
    else:
        text = plain.decode("utf-8", "replace")
    for _ in range(rng.choice((1, 1, 2)) - len(done)):
        act = rng.choice(TEXTS)
        text = act(text, rng)
        done.append(act.__name__)
    changed = text.encode(rng.choice(("utf-8",) * 8 + ("utf-16", "latin-1")), "replace")
    return (gzip.compress(changed, 1) if packed else changed), ", ".join(done)


def baseline(whole: bytes, rng: random.Random) -> tuple[bytes, str]:
    """What `compare --save-baseline` writes, with some of its values, or its text, changed."""
    text = changed_values(whole, rng)
    if rng.random() < 0.2:
        text = rng.choice((cut, around))(text, rng)
    return text.encode("utf-8", "surrogatepass"), "values"


def _bomb(rng: random.Random) -> bytes:
    """A small file that becomes gigabytes."""
    unit = rng.choice((b" ", b"[", b"\0", b'{"a":1},', b'"', b"0"))
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    head = rng.choice((b'{"traceEvents": [', b'{"traceEvents": [{"ph": "X", "name": "', b""))
    parts = [packer.compress(head)]
    parts += [packer.compress(unit * (2**24 // len(unit))) for _ in range(rng.choice((8, 128)))]
    return b"".join([*parts, packer.flush()])


def repacked(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    ways: dict[str, Callable[[], bytes]] = {
        "gz trailing": lambda: data + rng.randbytes(rng.choice((1, 100, 5000))),
        "gz twice": lambda: data + data,
        "gz checksum": lambda: data[:-8] + rng.randbytes(8),
        "gz cut": lambda: data[: rng.randrange(len(data))],
        "gz bomb": lambda: _bomb(rng),
        "gz in gz": lambda: gzip.compress(data),
        "not packed": lambda: gzip.decompress(data),
        "gz head": lambda: data[:10] + b"\x00" * 10 + data[20:],
    }
    how = rng.choice(list(ways))
    return ways[how](), how


def snapshot(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A memory snapshot that points into itself or says something else, of any protocol."""
    protocol, content = rng.randrange(6), pickle.loads(data)
    if rng.random() < 0.2:
        with contextlib.suppress(AttributeError):
            content[rng.choice(list(content))].append(content)
        done = "in itself"
    else:
        done = "values"
        for _ in range(rng.choice((1, 3, 30))):
            change(content, rng)
    trailing = rng.randbytes(50) if rng.random() < 0.2 else b""
    return pickle.dumps(content, protocol=protocol) + trailing, f"{done}, {protocol=}"


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes with one to three damages: lost, changed, moved or added."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if changed:
            _change_bytes(changed, rng)
    return bytes(changed)


def _change_bytes(data: bytearray, rng: random.Random) -> None:
    size = min(len(data), rng.choice((1, 4, 64, 512, 4096, 40_000)))
    start, other = (rng.randrange(max(1, len(data) - size)) for _ in range(2))
    block, kind = data[start : start + size], rng.randrange(10)
    if kind < 2:
        for _ in range(rng.choice((1, 1, 3, 20, 200))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind < 4:
        filled = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size)))
        data[start : start + size] = filled
    elif kind < 6:
        # numbers as programs fear them, in the first part or anywhere
        value = rng.choice((0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1))
        width, order = rng.choice((1, 2, 4, 8)), rng.choice(("big", "little"))
        at = rng.randrange(max(1, min(rng.choice((100, len(data))), len(data)) - width))
        data[at : at + width] = (value % 256**width).to_bytes(width, order)
    elif kind == 6:
        del data[rng.randrange(len(data)) :]
    elif kind == 7:
        del data[start : start + size]
    elif kind == 8:
        data[start:start] = block
    else:
        data[start : start + size] = data[other : other + size]
        data[other : other + size] = block
