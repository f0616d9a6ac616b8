"""Where in the source memory was allocated: call stacks as places that people know.

A place is the first frame of the user's own code, else the first Python frame outside torch: the
frames before it are the allocator, torch's own modules and libraries, which allocate for everybody.
"""

import re

import numpy as np

from nsightpy.frames import Frame, Ints, Labels

BY = ("place", "function", "file", "stack")
# Code of torch itself, installed or in a checkout, and what its compilers generate.
_TORCH = re.compile(
    r"(?:^|/)(?:(?:site|dist)-packages/(?:torch|functorch|triton)/"
    r"|torch/(?:_\w+|accelerator|ao|amp|autograd|backends|compiler|cpu|cuda|distributed|export|fft"
    r"|func|futures|fx|jit|library|linalg|masked|mps|multiprocessing|nested|nn|onnx|optim|overrides"
    r"|package|profiler|quantization|sparse|special|storage|testing|utils|xpu|functional"
    r"|random|serialization)(?:/|\.py$)"
    r"|torchinductor_[^/]*/)"
    r"|^<eval_with_key>"
)
# What was installed, and Python's own modules.
_INSTALLED = re.compile(r"(?:^|/)(?:(?:site|dist)-packages|lib/python\d[.\d]*)/")
_PYTHON = re.compile(r"\.pyw?$|^<ipython-input|^<stdin>$")
_GENERATED = re.compile(r"^<")
_MACHINERY = re.compile(
    r"^(?:torch::unwind|torch::CapturedTraceback|torch::cuda::|c10::|at::detail::|void \*|std::)"
)
# How well a frame names a place; of equal ones the innermost does.
USER, LIBRARY, _GENERATED_CODE, _TORCH_PYTHON, _CPP, _ALLOCATOR = range(6)


def places(frames: Frame, by: str = "place") -> Labels:
    """The place of each stack (columns stack, function, file, line; stacks count from 0).

    by: "place" is file:line function, "function" file function, "file" the file, "stack" every
    Python frame outside torch from the innermost out.
    """
    stack = frames.ints("stack")
    count = int(stack[-1]) + 1 if len(stack) else 0
    # how well each frame names a place: from its file, then from its function
    kind = frames.labels("file").map(kind_of_file, np.int64)
    machinery = frames.labels("function").where(_MACHINERY.match)
    kind = np.where((kind == _CPP) & machinery, _ALLOCATOR, kind)
    order = np.lexsort((np.arange(len(stack)), kind, stack))
    first = order[np.searchsorted(stack[order], np.arange(count))]
    files = short_paths(frames.labels("file"))
    if by == "stack":
        return _whole_stacks(frames, kind, first, files)
    return Labels.of(_name(frames, files, row, by) for row in first.tolist())


def kind_of_file(file: str) -> int:
    """How well code of a file names a place: USER, LIBRARY, or less."""
    plain = file.replace("\\", "/")
    if _TORCH.search(plain):
        return _TORCH_PYTHON
    if _PYTHON.search(plain):
        return LIBRARY if _INSTALLED.search(plain) else USER
    return _GENERATED_CODE if _GENERATED.match(plain) else _CPP


def _whole_stacks(frames: Frame, kind: Ints, first: Ints, files: list[str]) -> Labels:
    """The frames of a stack that are as good as its best one, innermost first; libraries' too."""
    stack = frames.ints("stack")
    level = np.maximum(kind, LIBRARY)
    kept = np.flatnonzero(level == level[first][stack])
    texts = [_name(frames, files, row, "place") for row in kept.tolist()]
    joined: dict[int, list[str]] = {}
    for number, text in zip(stack[kept].tolist(), texts, strict=True):
        joined.setdefault(number, []).append(text)
    return Labels.of(" < ".join(joined[number]) for number in range(len(first)))


def _name(frames: Frame, files: list[str], row: int, by: str) -> str:
    file = files[int(frames.labels("file").codes[row])]
    function = frames.labels("function")[row]
    line = int(frames.ints("line")[row])
    if by == "file":
        return file or function
    where = f"{file}:{line}" if by == "place" and line > 0 else file
    return f"{where} {function}".strip()


def short_paths(files: Labels) -> list[str]:
    """The end of each path: two parts of it, and more where that would not distinguish files."""
    split = [[part for part in file.replace("\\", "/").split("/") if part] for file in files.values]
    depth = [2] * len(split)
    while True:
        shown = ["/".join(parts[-many:]) for parts, many in zip(split, depth, strict=True)]
        alike: dict[str, set[tuple[str, ...]]] = {}
        for name, parts in zip(shown, split, strict=True):
            alike.setdefault(name, set()).add(tuple(parts))
        longer = [
            many + 1 if len(alike[name]) > 1 and many < len(parts) else many
            for name, parts, many in zip(shown, split, depth, strict=True)
        ]
        if longer == depth:
            return ["" if name == "??" else name for name in shown]
        depth = longer
