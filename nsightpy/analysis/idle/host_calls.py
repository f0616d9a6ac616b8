"""What an API call does to the thread that makes it: launch, copy, wait, allocate, load code."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from nsightpy.frames import Labels

LAUNCH, COPY, WAIT, ALLOCATION, MODULE, OTHER = range(6)

# First that fits. CUDA runtime (cuda*), CUDA driver (cu*) and HIP (hip*) names.
_KINDS = (
    (WAIT, re.compile(r"^(?:cuda|cu|hip)\w*Synchronize|^cuEventSynchronize")),
    (LAUNCH, re.compile(r"Launch")),
    (MODULE, re.compile(r"Module|Library|FuncLoad|FuncGet|FuncSet|Kernel(?:Get|Set)|Link|^cuInit")),
    (MODULE, re.compile(r"Ctx(?:Create|Set)|Primary|cudaSetDevice$|GetExportTable|GetProcAddress")),
    (MODULE, re.compile(r"Graph(?:Instantiate|Upload)")),
    (
        ALLOCATION,
        re.compile(
            r"Malloc|Free|MemAlloc|HostAlloc|HostRegister|HostUnregister|HostGetDevicePointer"
            r"|MemCreate|MemMap|MemUnmap|MemRelease|MemAddress|MemSetAccess|MemPool"
        ),
    ),
    (COPY, re.compile(r"Mem(?:cpy|set)|MemPrefetch")),
)


def kinds_of_calls(names: Labels) -> NDArray[np.int8]:
    """The kind of each call by its name; an asynchronous free or allocation is one, too."""

    def kind_of(name: str) -> int:
        return next((kind for kind, pattern in _KINDS if pattern.search(name)), OTHER)

    return names.map(kind_of, np.int8)
