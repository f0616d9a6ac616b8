"""What an export says about a GPU: one H100 as the driver reports it, new and old layout."""

_NUMBERS = (
    "vmId 281474976710656 isDiscrete 1 l2CacheSize 52428800 totalMemory 85029158912 "
    "memoryBandwidth 3352320000000 clockRate 1980000000 smCount 132 luid 0 revision 161 "
    "nodeMask 0 constantMemory 65536 maxIPC 4 maxRegistersPerBlock 65536 "
    "maxShmemPerBlock 49152 maxShmemPerBlockOptin 232448 maxShmemPerSm 233472 "
    "maxRegistersPerSm 65536 threadsPerWarp 32 asyncEngines 3 maxWarpsPerSm 64 "
    "maxBlocksPerSm 32 maxThreadsPerBlock 1024 maxBlockDimX 1024 maxBlockDimY 1024 "
    "maxBlockDimZ 64 maxGridDimX 2147483647 maxGridDimY 65535 maxGridDimZ 65535 "
    "computeMajor 9 computeMinor 0 smMajor 9 smMinor 0"
)
# Names of exports up to 2021, and those of today.
_OLD_NAMES = (
    "pciBusId busLocation globalMemorySize totalMemory constantMemorySize constantMemory "
    "numThreadsPerWarp threadsPerWarp numMemcpyEngines asyncEngines numMultiprocessors smCount "
    "maxWarpsPerMultiprocessor maxWarpsPerSm maxBlocksPerMultiprocessor maxBlocksPerSm "
    "maxSharedMemoryPerBlock maxShmemPerBlock maxSharedMemoryPerMultiprocessor maxShmemPerSm "
    "maxRegistersPerMultiprocessor maxRegistersPerSm computeCapabilityMajor computeMajor "
    "computeCapabilityMinor computeMinor deviceId cuDevice"
)


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


H100: dict[str, object] = {"name": "NVIDIA H100 80GB HBM3", "chipName": "GH100"}
H100 |= {name: int(value) for name, value in _pairs(_NUMBERS).items()}


def identity(gpu_id: int, host: str | None) -> dict[str, object]:
    """The columns that differ between the GPUs of a machine."""
    seed = sum(ord(letter) * 131**place for place, letter in enumerate(host or "")) % 0xFFFFFF
    return {
        **dict.fromkeys(("id", "pwGpuId", "cuDevice"), gpu_id),
        "busLocation": f"0000:{0x1B + 0x10 * gpu_id:02x}:00.0",
        "uuid": f"{seed:08x}-0000-4000-8000-{gpu_id:012x}",
    }


def old_layout(gpu: dict[str, object], pid: int) -> dict[str, object]:
    """The same GPU in the columns of exports up to 2021: kB/s, kHz and their own names."""
    return {
        **gpu,
        **{old: gpu[new] for old, new in _pairs(_OLD_NAMES).items()},
        "globalMemoryBandwidth": int(str(gpu["memoryBandwidth"])) // 1000,
        "coreClockRate": int(str(gpu["clockRate"])) // 1000,
        "pid": pid,
    }
