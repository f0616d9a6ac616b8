"""Kernel names as an export holds them: demangled, short and mangled."""

from zlib import crc32

_OPEN, _CLOSE = "<([{", ">)]}"


def _path(head: str) -> list[str]:
    """The namespaces and the name, without template arguments and parameters."""
    depth, kept = 0, ""
    for letter in head:
        if letter == "(" and depth == 0:
            break
        if letter in _OPEN:
            depth += 1
        elif letter in _CLOSE and depth:
            depth -= 1
        elif depth == 0:
            kept += letter
    return kept.split("::")


def short_name(demangled: str) -> str:
    """The base name: no return type, namespaces, template arguments or parameters."""
    head = demangled.replace("operator()", "operator").replace("<unnamed>::", "")
    base = _path(head)[-1].split()
    return base[-1] if base else demangled


def mangled_name(demangled: str) -> str:
    """A mangled form: a C name stays as it is, a C++ name an Itanium-like one."""
    if "(" not in demangled:
        return demangled
    head = demangled.removeprefix("void ").replace("<unnamed>", "_GLOBAL__N__1")
    path, tag = _path(head), crc32(demangled.encode())
    parts = "".join(f"{len(part)}{part}" for part in path if part)
    return f"_ZN{parts}ILi{tag}EEEvT_" if len(path) > 1 else f"_Z{parts}ILi{tag}EEvT_"
