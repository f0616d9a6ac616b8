"""What is wrong with how a command ended."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from fuzzer.child import MOST_BYTES, SECONDS, Place, Ran
from fuzzer.values import SCRIPT, SECRET

# Control characters but line ends and tabs, and those that reorder text.
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
UNFORESEEN = re.compile(r"nsightpy failed[^\n]* \((\w+[^)]{0,60})")
# What may begin with a sign in a cell.
NUMBER = re.compile(r"-|[-+]([\d,]+\.?\d*(e[-+]?\d+)?|inf|nan)", re.IGNORECASE)
State = dict[str, tuple[bytes, int]]


def state_of(folder: Path) -> State:
    """The files below a folder: their bytes and times."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def complaints(
    ran: Ran, words: list[str], place: Place, before: State, output: str
) -> Iterator[str]:
    """Everything that is wrong, each beginning with its kind."""
    yield from _ending(ran)
    after = state_of(place.folder)
    for name, held in before.items():
        if after.get(name) != held:
            yield f"input changed: {name!r}"
    for name in after.keys() - before.keys() - {output}:
        yield f"litter: {name!r}"
    if output and ran.code == 0 and not after.get(output, (b"", 0))[0]:
        yield "output: is empty or absent, and the exit code is 0"
    if output and ran.code in (1, 2) and output in after:
        yield "output: is there, and the exit code is not 0"
    data = after.get(output, (b"", 0))[0]
    form = words[words.index("--format") + 1] if "--format" in words else "table"
    yield from _texts(ran, output, data, form)
    if SECRET in ran.out + ran.err or SECRET.encode() in data:
        yield "secret: of the environment, in the output"
    for path in place.cache.rglob("*.columns"):
        if path.is_file() and SECRET.encode() in path.read_bytes():
            yield "secret: in the cache"


def _ending(ran: Ran) -> Iterator[str]:
    if ran.timed_out or ran.seconds > SECONDS:
        yield f"hang: {ran.seconds:.0f} s at {_place(ran.err)}"
    elif ran.code not in (0, 1, 2, 3):
        yield f"exit code: {ran.code}"
    if "Traceback (most recent call last)" in ran.err and not ran.timed_out:
        lines = ran.err.strip().splitlines()
        yield f"traceback: {lines[-1][:120]} at {_place(ran.err)}"
    for word in ("Exception ignored", "Warning: ", "Fatal Python error"):
        if re.search(rf"^\S*\s*{word}|^{word}", ran.err, re.MULTILINE):
            yield f"traceback: {word}"
    if ran.peak_bytes > MOST_BYTES:
        yield f"memory: {ran.peak_bytes / 1e9:.1f} GB"
    if "more memory than there is" in ran.err or "out of memory" in ran.err:
        yield "memory: refused by the system"
    has_message = re.search(r"^(nsightpy: |nsightpy failed |Error: )", ran.err, re.MULTILINE)
    if ran.code in (1, 2) and not has_message:
        yield f"message: none, exit code {ran.code}"
    if found := UNFORESEEN.search(ran.err):
        yield f"unforeseen: {found[1]}"


def _place(err: str) -> str:
    """Where in nsightpy a traceback ends; faulthandler's begin with the innermost."""
    found: list[str] = re.findall(r'File "[^"]*/nsightpy/([^"]+)", line (\d+)', err)
    if not found:
        return "?"
    place = found[0] if "(most recent call first)" in err else found[-1]
    return ":".join(place)


def _texts(ran: Ran, output: str, data: bytes, form: str) -> Iterator[str]:
    binary = output.endswith((".png", ".gz", ".pftrace"))
    written = data.decode("utf-8", "replace") if output and not binary else ran.out
    for text in (ran.err, ran.out, written) if form != "parquet" else ():
        if found := RAW.search(text):
            yield f"raw: {found[0]!r}"
    if (output.endswith((".html", ".htm", ".svg")) or form == "markdown") and SCRIPT in written:
        yield "markup: a script of a report is in the page"
    if ran.code:
        return
    if form == "csv":
        yield from _cells(written)
    if form == "json":
        try:
            json.loads(written, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            yield f"json: {str(error)[:60]}"


def _cells(text: str) -> Iterator[str]:
    try:
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    except csv.Error as error:
        yield f"csv: {error}"
        return
    for cell in cells:
        if cell[:1] in ("=", "@") or (cell[:1] in ("+", "-") and not NUMBER.fullmatch(cell)):
            yield f"formula: {cell[:40]!r}"
            return


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no JSON")
