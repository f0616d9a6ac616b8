"""Kernel names as an export holds them: demangled, short and mangled."""

from zlib import crc32

_OPEN, _CLOSE = "<([{", ">)]}"


def short_name(demangled: str) -> str:
    """The base name: no return type, namespaces, template arguments or parameters."""
    depth = 0
    kept = []
    head = demangled.replace("operator()", "operator").replace("<unnamed>::", "")
    for letter in head:
        if letter in _OPEN:
            if letter == "(" and depth == 0:
                break
            depth += 1
        elif letter in _CLOSE and depth:
            depth -= 1
        elif depth == 0:
            kept.append(letter)
    base = "".join(kept).rsplit("::", 1)[-1].split()
    return base[-1] if base else demangled


def mangled_name(demangled: str) -> str:
    """A mangled form: a C name stays as it is, a C++ name an Itanium-like one."""
    if "(" not in demangled:
        return demangled
    depth = 0
    path = [""]
    head = demangled.removeprefix("void ").replace("<unnamed>", "_GLOBAL__N__1")
    for letter in head:
        if letter in _OPEN:
            if letter == "(" and depth == 0:
                break
            depth += 1
        elif letter in _CLOSE and depth:
            depth -= 1
        elif depth == 0:
            path[-1] += letter
            if path[-1].endswith("::"):
                path[-1] = path[-1][:-2]
                path.append("")
    tag = crc32(demangled.encode())
    parts = "".join(f"{len(part)}{part}" for part in path if part)
    if len(path) > 1:
        return f"_ZN{parts}ILi{tag}EEEvT_"
    return f"_Z{parts}ILi{tag}EEvT_"
