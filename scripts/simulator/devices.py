"""What an export says about a GPU: one H100 as the driver reports it, new and old layout."""

H100: dict[str, object] = {
    "vmId": 1 << 48,
    "name": "NVIDIA H100 80GB HBM3",
    "isDiscrete": 1,
    "l2CacheSize": 52428800,
    "totalMemory": 85029158912,
    "memoryBandwidth": 3352320000000,
    "clockRate": 1980000000,
    "smCount": 132,
    "luid": 0,
    "chipName": "GH100",
    "revision": 161,
    "nodeMask": 0,
    "constantMemory": 65536,
    "maxIPC": 4,
    "maxRegistersPerBlock": 65536,
    "maxShmemPerBlock": 49152,
    "maxShmemPerBlockOptin": 232448,
    "maxShmemPerSm": 233472,
    "maxRegistersPerSm": 65536,
    "threadsPerWarp": 32,
    "asyncEngines": 3,
    "maxWarpsPerSm": 64,
    "maxBlocksPerSm": 32,
    "maxThreadsPerBlock": 1024,
    "maxBlockDimX": 1024,
    "maxBlockDimY": 1024,
    "maxBlockDimZ": 64,
    "maxGridDimX": 2147483647,
    "maxGridDimY": 65535,
    "maxGridDimZ": 65535,
    "computeMajor": 9,
    "computeMinor": 0,
    "smMajor": 9,
    "smMinor": 0,
}


def identity(gpu_id: int, host: str | None) -> dict[str, object]:
    """The columns that differ between the GPUs of a machine."""
    seed = sum(ord(letter) * 131**place for place, letter in enumerate(host or "")) % 0xFFFFFF
    return {
        "id": gpu_id,
        "pwGpuId": gpu_id,
        "cuDevice": gpu_id,
        "busLocation": f"0000:{0x1B + 0x10 * gpu_id:02x}:00.0",
        "uuid": f"{seed:08x}-0000-4000-8000-{gpu_id:012x}",
    }


def old_layout(gpu: dict[str, object], pid: int) -> dict[str, object]:
    """The same GPU in the columns of exports up to 2021: kB/s, kHz and their own names."""

    def number(name: str) -> int:
        return int(str(gpu[name]))

    return {
        "vmId": gpu["vmId"],
        "name": gpu["name"],
        "pciBusId": gpu["busLocation"],
        "globalMemoryBandwidth": number("memoryBandwidth") // 1000,
        "globalMemorySize": gpu["totalMemory"],
        "constantMemorySize": gpu["constantMemory"],
        "l2CacheSize": gpu["l2CacheSize"],
        "numThreadsPerWarp": gpu["threadsPerWarp"],
        "coreClockRate": number("clockRate") // 1000,
        "numMemcpyEngines": gpu["asyncEngines"],
        "numMultiprocessors": gpu["smCount"],
        "maxIPC": gpu["maxIPC"],
        "maxWarpsPerMultiprocessor": gpu["maxWarpsPerSm"],
        "maxBlocksPerMultiprocessor": gpu["maxBlocksPerSm"],
        "maxSharedMemoryPerBlock": gpu["maxShmemPerBlock"],
        "maxSharedMemoryPerMultiprocessor": gpu["maxShmemPerSm"],
        "maxRegistersPerMultiprocessor": gpu["maxRegistersPerSm"],
        "computeCapabilityMajor": gpu["computeMajor"],
        "computeCapabilityMinor": gpu["computeMinor"],
        "deviceId": gpu["cuDevice"],
        "pid": pid,
        **{name: gpu[name] for name in gpu if name.startswith(("maxBlockDim", "maxGridDim"))},
        "maxRegistersPerBlock": gpu["maxRegistersPerBlock"],
        "maxThreadsPerBlock": gpu["maxThreadsPerBlock"],
    }
