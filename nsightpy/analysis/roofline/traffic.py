"""Bytes per second of each memory level, and how many the machine could move.

Formulas: SpeedOfLight_(Hierarchical)RooflineChart of Nsight Compute 2020 to 2026. L2 and L1
counted stores until 2022 and count read returns only since: levels are not comparable across
that change.
"""

from __future__ import annotations

from nsightpy.analysis.roofline.readings import Rate, Readings

L2_BYTES_PER_CYCLE = 32
L1_BYTES_PER_CYCLE = 128
SECTOR_BYTES = 32
READ_RETURNS = "read returns only"
ALL_TRAFFIC = "reads and writes"
# Counters, the bytes of each count, and what they count.
_L2_WAYS = (
    ("derived__lts__lts2xbar_bytes", 1, READ_RETURNS),
    ("lts__lts2xbar_cycles_active", L2_BYTES_PER_CYCLE, READ_RETURNS),
    ("l1tex__m_xbar2l1tex_read_bytes", 1, READ_RETURNS),
    ("lts__t_bytes", 1, ALL_TRAFFIC),
)


def traffic(readings: Readings, clock_factor: float = 1.0) -> list[Rate]:
    """The levels whose traffic was measured; the factor scales the peak of L1, in the SM's domain.

    L2 and DRAM have clocks of their own, and keep those of the profile.
    """
    l2_hz = readings.get("lts__cycles_elapsed.avg.per_second")
    l1_hz = readings.get("l1tex__cycles_elapsed.avg.per_second")
    writeback = readings.l1_writeback
    derived = writeback.replace(
        "l1tex__lsu_writeback_active", "derived__l1tex__lsu_writeback_bytes"
    )
    l1_ways = (
        (derived, 1, READ_RETURNS),
        (writeback, L1_BYTES_PER_CYCLE, READ_RETURNS),
        ("l1tex__t_bytes", 1, ALL_TRAFFIC),
    )
    levels = (
        _dram(readings),
        _cache(readings, "l2", l2_hz, _L2_WAYS),
        _cache(readings, "l1", l1_hz and l1_hz * clock_factor, l1_ways),
    )
    return [level for level in levels if level is not None]


def peak_dram(readings: Readings) -> float | None:
    """Peak bytes/s of device memory: at the profiled clock, else 2 x maximum clock x bus width."""
    if not readings.has_dram_roofline:
        return None
    bytes_per_cycle = readings.get("dram__bytes.sum.peak_sustained")
    cycles_per_s = readings.get("dram__cycles_elapsed.avg.per_second")
    if bytes_per_cycle is not None and cycles_per_s is not None:
        return bytes_per_cycle * cycles_per_s
    clock = readings.get(
        "device__attribute_max_mem_frequency_khz", "device__attribute_memory_clock_rate"
    )
    width = readings.get(
        "device__attribute_fb_bus_width", "device__attribute_global_memory_bus_width"
    )
    return 2 * clock * 1e3 * width / 8 if clock and width else None


def _dram(r: Readings) -> Rate | None:
    peak = peak_dram(r)
    rate = r.get("dram__bytes.sum.per_second")
    if rate is None:
        rate = r.total("dram__bytes_read.sum.per_second", "dram__bytes_write.sum.per_second")
    if rate is None:
        rate = r.rate(_dram_bytes(r))
    if rate is None and peak is not None:
        share = r.get(
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        )
        rate = None if share is None else share / 100 * peak
    return None if rate is None else Rate("dram", rate, peak, ALL_TRAFFIC)


def _dram_bytes(r: Readings) -> float | None:
    for unit, size in (("bytes", 1), ("sectors", SECTOR_BYTES)):
        for parts in (("",), ("_read", "_write"), ("_op_read", "_op_write")):
            amount = r.total(*(f"dram__{unit}{part}.sum" for part in parts))
            if amount is not None:
                return amount * size
    return None


def _cache(
    r: Readings, level: str, clock: float | None, ways: tuple[tuple[str, int, str], ...]
) -> Rate | None:
    """The first counter with both its rate and its peak; the amount per time for the last one."""
    for counter, size, counted in ways:
        rate, width = r.get(f"{counter}.sum.per_second"), r.get(f"{counter}.sum.peak_sustained")
        if rate is not None and width is not None and clock:
            return Rate(level, rate * size, width * size * clock, counted)
    counter, size, counted = ways[-1]
    rate = r.get(f"{counter}.sum.per_second")
    if rate is None:
        rate = r.rate(r.get(f"{counter}.sum"))
    return None if rate is None else Rate(level, rate * size, None, counted)
