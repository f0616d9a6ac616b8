"""Keys of rows: the same kernel, range, call, operator or collective has one key in every answer.

A key is a word for the kind and 64 bits of BLAKE2b over the identity: `kernel-5f0c…`. It depends on
no report, rank, device or platform, and on no count or time, so it may be kept and compared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from nsightpy.names import canonical_name
from nsightpy.results.listing import Value

KERNEL, VARIANT, MEMORY, API = "kernel", "variant", "memory", "api"
RANGE, OPERATOR, COLLECTIVE, MODULE = "range", "operator", "collective", "module"
# The CUDA runtime's entry points carry the version that introduced them: cudaLaunchKernel_v7000.
_ENTRY_VERSION = re.compile(r"_v\d{4,}$")
_KEPT = 1 << 16


@dataclass(frozen=True, slots=True)
class RowKey:
    """What identifies the thing that a row is about: its kind, the columns, the key's own column.

    The first column holds the name; a row without one has no key. `only`: a column and its value in
    the rows that have one.
    """

    kind: str
    columns: tuple[str, ...]
    name: str = "key"
    only: tuple[str, str] | None = None

    def is_in(self, columns: Sequence[str]) -> bool:
        """Whether rows of these columns can have it."""
        only = () if self.only is None else self.only[:1]
        return {*self.columns, *only} <= set(columns)

    def of(self, row: Mapping[str, Value]) -> str | None:
        """The key of a row, given by column; None where it names nothing."""
        if self.only is not None and row.get(self.only[0]) != self.only[1]:
            return None
        first, *more = (row[column] for column in self.columns)
        return key_of(self.kind, str(first), *more) if first not in (None, "") else None


@lru_cache(_KEPT)
def key_of(kind: str, name: str, *more: Value) -> str:
    """The key of a thing of this kind and name, told from others by `more`.

    Kernels go by `names.canonical_name`, so that the demangled styles of nsys, ncu and PyTorch
    agree; an operation called [CUDA memcpy ...] or [CUDA memset] is one on memory even where it is
    listed among kernels; calls go without the version of their entry point.
    """
    if kind == KERNEL and name.startswith("[CUDA mem"):
        kind = MEMORY
    if kind in (KERNEL, VARIANT):
        name = canonical_name(name)
    elif kind == API:
        name = _ENTRY_VERSION.sub("", name)
    text = "\0".join([kind, name, *("" if part is None else str(part) for part in more)])
    return f"{kind}-{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def row_keys(kind: str, *columns: str) -> tuple[RowKey, ...]:
    """The key of rows that these columns identify; a variant of a kernel has the kernel's, too."""
    if kind == VARIANT:
        return (RowKey(KERNEL, columns[:1]), RowKey(VARIANT, columns, "variant_key"))
    return (RowKey(kind, columns),)
