"""ncu's filters: names exactly as they are, or as regular expressions that match nothing else.

ncu takes `-k` once, searches with Boost's Perl syntax, and reads "regex:" at the beginning of a
name as its own word. What is made here is printable ASCII, whatever the names hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

BASES = ("mangled", "function", "demangled")
_PLAIN = re.compile(r"(?![-@]|regex:)[\x20-\x7e]+")
_QUOTED = r"[\s'\"\\]"
_WORD = re.compile(r"[A-Za-z0-9_]")
_NVTX_SPECIAL = re.compile(r"([\\@,\[\]/*+])")
_BRACKETED = set(".$*+?(){}|")


@dataclass(frozen=True, slots=True)
class NameFilter:
    """Kernels by name: `base` says which of their names ncu compares (mangled, function, ...)."""

    base: str
    names: tuple[str, ...]

    def arguments(self, *, bare: bool = False) -> list[str]:
        """The options; `bare` for a response file: no quotes, backslashes or blanks in them."""
        return ["--kernel-name-base", self.base, "-k", self.expression(bare=bare)]

    def expression(self, *, bare: bool = False) -> str:
        """The value of -k: the one name itself where that is safe, else an anchored regex."""
        plain = all(_PLAIN.fullmatch(name) for name in self.names)
        if len(self.names) == 1 and plain and not (bare and re.search(_QUOTED, self.names[0])):
            return self.names[0]
        either = "|".join(map(bare_regex if bare else exact_regex, self.names))
        # ^ and $ match at every line of a name; these do not, but few know them
        return f"regex:^({either})$" if plain or bare else f"regex:\\A({either})(?![\\s\\S])"


def exact_regex(name: str) -> str:
    r"""A regular expression for this text alone; what is not printable ASCII byte by byte, \x0a."""
    return "".join(map(_escaped, name))


def bare_regex(name: str) -> str:
    """The same without a backslash, quote or blank: those characters match any one."""
    return "".join(map(_bracketed, name))


def _escaped(character: str) -> str:
    if _WORD.match(character):
        return character
    if character.isascii() and character.isprintable():
        return character if character in " '\"<>,:;&~=!-/%@#`" else f"\\{character}"
    data = character.encode(
        "utf-8", "surrogateescape" if _is_escaped_byte(character) else "replace"
    )
    return "".join(f"\\x{byte:02x}" for byte in data)


def _bracketed(character: str) -> str:
    if _WORD.match(character) or character in "<>,:;&~=!-/%@#":
        return character
    if character in _BRACKETED:
        return f"[{character}]"
    data = character.encode(
        "utf-8", "surrogateescape" if _is_escaped_byte(character) else "replace"
    )
    return "." * len(data)


def _is_escaped_byte(character: str) -> bool:
    return "\udc80" <= character <= "\udcff"


def nvtx_filter(range_name: str, domain: str = "", *, style: str = "PushPop") -> str:
    """The value of --nvtx-include: `name/` for push/pop ranges, `name` for start/end ranges."""
    path = _NVTX_SPECIAL.sub(r"\\\1", range_name) + ("/" if style == "PushPop" else "")
    return f"{_NVTX_SPECIAL.sub(_BACKSLASHED, domain)}@{path}" if domain else path


_BACKSLASHED = r"\\\1"


def as_ranks(ranks: Iterable[int]) -> str:
    """Ranks as a list for a shell: "0 3"."""
    return " ".join(map(str, sorted(set(ranks))))
