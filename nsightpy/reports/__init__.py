"""One file each: NsysReport, TorchTrace, NcuReport, MemorySnapshot."""
