"""ncu's filters: names exactly as they are, or as regular expressions that match nothing else.

ncu takes `-k` once, searches with Boost's Perl syntax, and reads "regex:" at the beginning of a
name as its own word. What is made here is printable ASCII, whatever the names hold.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"(?![-@]|regex:)[\x20-\x7e]+")
_WORD = re.compile(r"[A-Za-z0-9_]")
_NVTX_SPECIAL = re.compile(r"([\\@,\[\]/*+])")


def name_filter(name: str) -> str:
    """The value of -k for this name alone: itself where that is safe, else an anchored regex."""
    # ^ and $ match at every line of a name; these do not, but few know them
    return name if _PLAIN.fullmatch(name) else f"regex:\\A({exact_regex(name)})(?![\\s\\S])"


def exact_regex(name: str) -> str:
    r"""A regular expression for this text alone; what is not printable ASCII byte by byte, \x0a."""
    return "".join(map(_escaped, name))


def _escaped(character: str) -> str:
    if _WORD.match(character):
        return character
    if character.isascii() and character.isprintable():
        return character if character in " '\"<>,:;&~=!-/%@#`" else f"\\{character}"
    is_byte = "\udc80" <= character <= "\udcff"
    data = character.encode("utf-8", "surrogateescape" if is_byte else "replace")
    return "".join(f"\\x{byte:02x}" for byte in data)


def nvtx_filter(range_name: str, domain: str = "", *, style: str = "PushPop") -> str:
    """The value of --nvtx-include: `name/` for push/pop ranges, `name` for start/end ranges."""
    name, of = (_NVTX_SPECIAL.sub(r"\\\1", text) for text in (range_name, domain))
    path = f"{name}/" if style == "PushPop" else name
    return f"{of}@{path}" if domain else path
