"""One file each: NsysReport, NcuReport."""
