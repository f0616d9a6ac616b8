"""Kernel names made short enough to read, for people only; machines always get them whole."""

import re
from collections import Counter
from collections.abc import Sequence

NO_NAME = "[no name]"  # of what must have one
_IN_SENTENCES = 60
# A cast follows no word: the (int) of [lambda(int) (instance 1)] is a parameter list.
_CASTS = re.compile(r"(?<!\w)\((?:unsigned |signed )?(?:int|bool|char|short|long|long long)\)")
_NAMESPACES = re.compile(
    r"(?:\(anonymous namespace\)|<unnamed>|\b(?!lambda\d+::|const::)[a-z_]\w*)::"
)
# No bracket inside, so that a name of nothing but openings costs one pass.
_LAMBDA = re.compile(r"\[lambda\([^\[\]]*\) \(instance (\d+)\)\]")
_SPACES = re.compile(r"\s+")
_UNNAMED = re.compile(r"(?:\(anonymous namespace\)|<unnamed>|\{anonymous\}|unnamed>)::")
# Values of template arguments, as the demanglers write them: 4, 4u, 4ul; true, (bool)1.
_SUFFIXES = re.compile(r"(?<=[<,(])(-?\d+)[uUlL]{1,3}(?=[,>)])")
_TRUTH = (("true", "1"), ("false", "0"))
_CALLED = re.compile(r"(?<=lambda)(\d+)::operator ?\(\)\(\) const(?=::)")

# GPUs and runtimes of other makers, which traces of PyTorch name as well.
_OTHER_MAKERS = re.compile(r"\b(?:AMD|Radeon|HIP|gfx\d\w+|Intel|Gaudi)\b", re.IGNORECASE)


def measured_by_ncu(*texts: str) -> bool:
    """Whether the names of a GPU and of the runtime that drove it are those of no other maker."""
    return not any(map(_OTHER_MAKERS.search, texts))


def file_name(path: str) -> str:
    """The last part of a path of any system."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path


def without_numbers(name: str) -> str:
    """The name with # for every number: tiles, versions, counters of compilers and of layers."""
    return re.sub(r"\d+", "#", name)


def function_name(name: str) -> str:
    """The function of a demangled name: no return type, no template arguments, no parameters."""
    plain = _without_signature(name)
    depth, brackets, kept = 0, 0, []
    for character in plain.replace("<unnamed>::", "").replace("(anonymous namespace)::", ""):
        if depth > 0:  # a template argument in brackets may compare: k<(1>0)>
            brackets += (character == "(") - (character == ")")
        if not brackets:
            depth += (character == "<") - (character == ">")
        if depth <= 0 and character not in "<>":
            kept.append(character)
    return "".join(kept).strip() or name


def canonical_name(name: str) -> str:
    """The name in the style of no demangler: what names one kernel in nsys, ncu and PyTorch.

    Blanks, casts, suffixes of numbers, unnamed namespaces and the leading `void` go; parameters
    go where there are template arguments, from which they follow, and which some demanglers write
    as T1. A mangled name or one without a signature stays as it is.
    """
    plain = _SPACES.sub(" ", name).strip().removeprefix("void ")
    head = _without_signature(plain)
    text = _SPACES.sub("", _CASTS.sub("", _UNNAMED.sub("", head if "<" in head else plain)))
    for word, number in _TRUTH:
        text = re.sub(rf"(?<=[<,(]){word}(?=[,>)])", number, text)
    return _SUFFIXES.sub(r"\1", text)


def readable(name: str, width: int) -> str:
    """The name in at most `width` characters if leaving out signature and namespaces achieves it.

    The steps, each only where the one before is still too long: parameters, return type and
    integer casts go; then namespaces. What is longer still is returned for the caller to cut.
    """
    if len(name) <= width:
        return name
    plain = _CASTS.sub("", _without_signature(name)) or name
    if len(plain) <= width:
        return plain
    short = _CALLED.sub(r"\1", _LAMBDA.sub(r"lambda\1", plain))
    return _NAMESPACES.sub("", short) or plain


def readable_apart(names: Sequence[str], width: int) -> list[str]:
    """The readable names; those that would become the same text stay as they are."""
    short = {name: readable(name, width) for name in dict.fromkeys(names)}
    meant = Counter(short.values())
    return [short[name] if meant[short[name]] == 1 else name for name in names]


def brief(name: str, width: int) -> str:
    """The readable name, its middle cut where it is still longer, as tables do."""
    text = readable(name, width)
    if len(text) <= width:
        return text
    tail = (width - 1) // 3
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def brief_kernel(name: str) -> str:
    """A kernel's name inside a sentence: what rankings show of it in a wide terminal."""
    return brief(name, _IN_SENTENCES)


def _without_signature(name: str) -> str:
    """Without a leading `void ` and the parameter list at the end."""
    plain = name.removeprefix("void ")
    if not plain.endswith(")"):
        return plain
    depth = 0
    for place in range(len(plain) - 1, 0, -1):
        depth += (plain[place] == ")") - (plain[place] == "(")
        if depth == 0:
            return plain[:place]
    return plain
