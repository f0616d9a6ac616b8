"""How a capture records what a question needs, in the words of the tool that captured."""

from __future__ import annotations

_PAYLOAD = (
    "sizes are in NCCL's NVTX payload, which these exports lack. It takes NCCL 2.16 and `nsys "
    "profile -t cuda,nvtx`, and an export with `--include-json true` (nsys 2025 on)."
)
# What is said of Nsight Systems reports, and what of PyTorch traces instead.
_OF_TRACES = (
    ("`nsys profile -t cuda` records them.", "ProfilerActivity.CUDA records them."),
    ("`nsys profile -t cuda` does.", "ProfilerActivity.CUDA does."),
    (
        "(no recorded events with eventSyncId)",
        "(enable_cuda_sync_events in torch.profiler's experimental_config records it)",
    ),
    (
        _PAYLOAD,
        "sizes are arguments of NCCL's kernels (PyTorch 2.3 on), which these traces lack.",
    ),
    (
        "`nsys profile --gpu-metrics-devices=all` samples them.",
        "traces of PyTorch never do; `nsys profile --gpu-metrics-devices=all` samples them.",
    ),
    (
        "`nsys profile --nic-metrics=lf` samples them.",
        "traces of PyTorch never do; `nsys profile --nic-metrics=lf` samples them.",
    ),
    (
        "The capture holds no calls of this library: `nsys profile",
        "A PyTorch trace holds calls of CUDA and HIP only: `nsys profile",
    ),
    (
        "the capture holds no NVTX ranges; profile with `-t cuda,nvtx`.",
        "the trace holds no ranges; torch.profiler.record_function makes them.",
    ),
)


def for_kind(note: str, kind: str) -> str:
    """A note in the words of the tool that made the reports (nsys, torch)."""
    if kind == "torch":
        for said, instead in _OF_TRACES:
            note = note.replace(said, instead)
    return note
