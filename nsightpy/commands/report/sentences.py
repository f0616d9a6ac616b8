"""What an answer says, in one sentence: the first thing to know of a table."""

from __future__ import annotations

from statistics import median
from typing import TypeAlias

from nsightpy.names import function_name
from nsightpy.results import Table, Value, number
from nsightpy.results.series import Histogram
from nsightpy.units import counted, format_bytes, format_time, share_text, significant

Record: TypeAlias = dict[str, Value]
LONGEST_NAME = 60
HALF = 0.5
# A wait of less of a collective's time is not worth a word.
LEAST_WAIT = 0.01


def kernels(table: Table) -> str:
    """Which kernel takes most, and how few make most of the time."""
    shares = [number(value) for value in table.column("Time (%)")]
    first = called(table.first(1).records()[0]["Name"])
    whole, few = 0.0, len(shares)
    for place, share in enumerate(shares, start=1):
        whole += share
        if whole >= 90.0:
            few = place
            break
    rest = f"; {few} of {counted(len(shares), 'kernel')} take 90 %" if len(shares) > 2 else ""
    return f"{first} takes {significant(shares[0])} % of the time of all kernels{rest}."


def operators(table: Table) -> str:
    first = table.first(1).records()[0]
    whole = sum(number(value) for value in table.column("device_self_ns"))
    launched = number(first["device_self_ns"])
    if not whole:
        host = format_time(number(first["host_self_ns"]))
        return f"{called(first['operator'])} takes the most host time itself: {host}."
    return (
        f"{called(first['operator'])} launched {share_text(launched, whole)} of the device time "
        f"that operators launched: {format_time(launched)} "
        f"in {counted(int(number(first['calls'])), 'call')}."
    )


def modules(table: Table) -> str:
    outer = [record for record in table.records() if "/" not in str(record["module"])]
    first = max(outer or table.records(), key=lambda record: number(record["device_total_ns"]))
    inside = [
        record
        for record in table.records()
        if str(record["module"]).startswith(f"{first['module']}/")
    ]
    part = share_text(number(first["share_of_device_time"]), 1)
    text = f"{called(first['module'])} launched {part} of the device time"
    if not inside:
        return f"{text}."
    most = max(inside, key=lambda record: number(record["device_self_ns"]))
    share = share_text(number(most["share_of_device_time"]) * _own_part(most), 1)
    return f"{text}; inside it {called(most['module'])} the most itself, {share}."


def _own_part(record: Record) -> float:
    """What a module launched itself, of what was launched in it."""
    whole = number(record["device_total_ns"])
    return number(record["device_self_ns"]) / whole if whole else 0.0


def steps(table: Table) -> str:
    records = table.records()
    kinds = dict.fromkeys(str(record["phase"]) for record in records)
    parts = []
    for kind in kinds:
        times = [number(record["busy_ns"]) for record in records if record["phase"] == kind]
        middle = format_time(median(times))
        parts.append(f"{counted(len(times), f'{kind} step')} with {middle} of GPU time")
    return f"{', '.join(parts)} (medians)."


def graphs(table: Table) -> str:
    first = table.first(1).records()[0]
    return (
        f"Graph {first['graph']} of {place(first)} takes the most time: "
        f"{counted(int(number(first['replays'])), 'replay')} of "
        f"{format_time(number(first['replay_med_ns']))}, launched in "
        f"{format_time(number(first['launch_med_ns']))} each (medians)."
    )


def collectives(table: Table) -> str:
    first = table.first(1).records()[0]
    size = f" of {format_bytes(number(first['bytes']))}" if first["bytes"] is not None else ""
    speed = first["busbw_gb_per_s"]
    rate = f" at a bus bandwidth of {significant(number(speed))} GB/s" if speed else ""
    median, wait = number(first["duration_med_ns"]), number(first["jitter_med_ns"])
    beyond = f"; a rank waits {format_time(wait)} beyond the transfer"
    waited = beyond if wait >= LEAST_WAIT * median else ""
    late = first["last_rank"]
    last = f", last of all most often rank {late}" if late is not None else ""
    return (
        f"{first['operation']}{size} takes the most time: median "
        f"{format_time(median)}{rate}{waited}{last}."
    )


def utilization(table: Table) -> str:
    devices: dict[tuple[Value, Value], list[float]] = {}
    for record in table.records():
        if record["busy_share"] is not None:
            devices.setdefault((record["rank"], record["device"]), []).append(
                number(record["busy_share"])
            )
    quiet = {
        at: sum(busy < HALF for busy in shares) / len(shares) for at, shares in devices.items()
    }
    if not any(quiet.values()):
        return "Every device was busy for more than half of each moment."
    worst = max(quiet, key=lambda at: quiet[at])
    where = place({"rank": worst[0], "device": worst[1]}).capitalize()
    return f"{where} is less than half busy in {share_text(quiet[worst], 1)} of the moments."


def histogram(table: Table) -> str:
    modes = table.modes if isinstance(table, Histogram) else ()
    several = [mode for mode in modes if len(mode.medians_ns) > 1]
    if not several:
        return "Each of the kernels with the most time gathers around one duration."
    first = several[0]
    parts = [
        f"{format_time(median)} ({share_text(count, first.instances)})"
        for median, count in zip(first.medians_ns, first.counts, strict=True)
    ]
    return f"{called(first.name)} gathers around {', '.join(parts)}."


def pace(table: Table) -> str:
    times = [number(value) for value in table.column("duration_ns")]
    middle, name = median(times), called(table.column("name")[0])
    most = (
        f"; the longest instance takes {significant(max(times) / middle)} times that"
        if middle
        else ""
    )
    return f"{name}: {counted(len(times), 'instance')} of {format_time(middle)} (median){most}."


def ranks(table: Table) -> str:
    records = table.records()
    late = [record for record in records if record.get("straggler")]
    waits = [number(record["wait_ns"]) for record in records if record["wait_ns"] is not None]
    most = f" Ranks wait for others up to {format_time(max(waits))}." if waits else ""
    if late:
        part = late[0]["arrived_last_share"]
        often = f" in {share_text(number(part), 1)} of all collectives" if part is not None else ""
        return f"The others wait for rank {late[0]['rank']}: it arrives last{often}.{most}"
    return f"No rank makes the others wait as a rule.{most}"


def imbalance(table: Table) -> str:
    first = max(table.records(), key=lambda record: number(record["max_over_mean"]))
    return (
        f"{called(first['name'])} differs most between ranks: rank {first['slowest_rank']} spends "
        f"{significant(number(first['max_over_mean']))} times the mean on it."
    )


def iterations(table: Table) -> str:
    records = table.records()
    steady = [record for record in records if record["phase"] == "steady"] or records
    times = sorted(number(record["duration_ns"]) for record in steady)
    count = len({record["iteration"] for record in steady})
    word = "steady iteration" if steady[0]["phase"] == "steady" else "iteration"
    spread = f" ({format_time(times[0])} to {format_time(times[-1])})" if len(times) > 1 else ""
    idle = sum(number(record["idle_ns"]) for record in steady)
    part = share_text(idle, sum(times))
    return f"{counted(count, word)} of {format_time(median(times))}{spread}; idle {part} of that."


def ranges(table: Table) -> str:
    first = max(table.records(), key=lambda record: number(record["total_projected_ns"]))
    gpu, host = number(first["total_projected_ns"]), number(first["total_range_ns"])
    if not gpu:
        return f"No range launched GPU work itself; {called(first['range'])} is the longest."
    part = first["share_of_busy"]
    busy = f", {share_text(number(part), 1)} of the busy time" if part else ""
    return (
        f"{called(first['range'])} spans the most GPU time: {format_time(gpu)}{busy}, in "
        f"{format_time(host)} on the host."
    )


def gaps(table: Table) -> str:
    first = table.first(1).records()[0]
    where = place(first)
    part = f"{share_text(number(first['share_of_window']), 1)} of its window"
    cause = f", {first['cause']}" if first["cause"] not in (None, "") else ""
    length = format_time(number(first["duration_ns"]))
    return f"The longest idle interval: {length} on {where}, {part}{cause}."


def memory(table: Table) -> str:
    first = table.first(1).records()[0]
    speed, size = first.get("throughput_gb_per_s"), number(first["Total (MB)"])
    rate = f" at {significant(number(speed))} GB/s" if speed and size else ""
    name = str(first["Operation"]).strip("[]")
    amount = f", {format_bytes(size * 1e6)}{rate}" if size else ""
    return f"{name} takes the most time: {format_time(number(first['Total Time (ns)']))}{amount}."


def memory_usage(table: Table) -> str:
    first = max(table.records(), key=lambda record: number(record["peak_bytes"]))
    held = number(first["at_peak_bytes"])
    who = f"; {called(first['allocated_by'])} holds {format_bytes(held)} of it" if held else ""
    return f"The peak is {format_bytes(number(first['peak_bytes']))} on {place(first)}{who}."


def launches(table: Table) -> str:
    first = max(table.records(), key=lambda record: number(record["count"]))
    return (
        f"{called(first['name'])} is launched most often, {number(first['count']):,.0f} times: the "
        f"call takes {format_time(number(first['api_med_ns']))}, then it waits "
        f"{format_time(number(first['queue_med_ns']))} in the queue and runs "
        f"{format_time(number(first['kernel_med_ns']))} (medians)."
    )


def queues(table: Table) -> str:
    first = max(table.records(), key=lambda record: number(record["launch_bound_ns"]))
    if not number(first["launch_bound_ns"]):
        return "No stream waited for its launches: work was queued ahead."
    lost = format_time(number(first["launch_bound_ns"]))
    part = share_text(number(first["launch_bound_ns"]), number(first["window_ns"]))
    return f"Stream {first['stream']} of {place(first)} waited {lost} for launches, {part}."


def sync_waits(table: Table) -> str:
    first = max(table.records(), key=lambda record: number(record["device_idle_ns"]))
    lost = number(first["device_idle_ns"])
    if not lost:
        return "No synchronising call left a device idle."
    return (
        f"{first['api']} leaves {place(first)} idle for {format_time(lost)}, "
        f"in {counted(int(number(first['calls'])), 'call')}."
    )


def api(table: Table) -> str:
    first = table.first(1).records()[0]
    return (
        f"{called(first['Name'])} takes {significant(number(first['Time (%)']))} % of the time in "
        f"API calls: {format_time(number(first['Total Time (ns)']))}."
    )


def metrics(table: Table) -> str:
    several = len({record["range"] for record in table.records()})
    return f"Sampled GPU metrics inside {counted(several, 'range')}."


def place(record: Record) -> str:
    """The rank, or else the device, that a row is about."""
    rank, device = record.get("rank"), record.get("device")
    return f"device {device}" if rank is None else f"rank {rank}"


def called(name: Value, width: int = LONGEST_NAME) -> str:
    """A kernel's or range's name in a sentence."""
    text = str(name)
    short = function_name(text) if "(" in text or "<" in text else text
    return short if len(short) <= width else f"{short[: width - 1]}…"
