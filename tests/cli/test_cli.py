"""The command line as a contract: exit codes, columns, formats, streams, files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsightpy.command_table import COMMANDS
from tests.support.reports import ROOT, ask

TRAINING = ROOT / "sample_reports" / "training_4rank"
SINGLE = ROOT / "sample_reports" / "single_process.sqlite"
TIMES = "Time (%),Total Time (ns),{},Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)"
# What scripts rely on: these columns come first, in this order. By what a command is split, or
# the columns that it has without.
COLUMNS = {
    **dict.fromkeys(
        ("summarize", "findings"),
        "finding,severity,rank,device,evidence,recoverable_ns,recoverable_share,next_command,id,"
        "window,start_ns,duration_ns,gain_ns,gain_share,part_of",
    ),
    "info": "report,kind,rank,rank_source,host,gpu,devices,processes,tool_version,schema_version,"
    "start_utc,duration_ns,kernels,warnings",
    "compare": "name,before_ns,after_ns,delta_ns,ratio,before_n,after_n,verdict,section,ratio_low,"
    "ratio_high,p_value,matched_by",
    "kernels": f"{TIMES.format('Instances')},Name",
    "kernels --by category": f"category,{TIMES.format('Instances')}",
    "operators": "operator,calls,host_total_ns,host_self_ns,device_total_ns,device_self_ns",
    "operators --by module": "module,calls,host_total_ns,host_self_ns,device_total_ns,"
    "device_self_ns,attributed_ns,share_of_device_time,domain",
    "api": f"{TIMES.format('Num Calls')},Name",
    "memory": f"{TIMES.format('Count')},Operation,Total (MB),Avg (MB),Med (MB),Min (MB),Max (MB),"
    "StdDev (MB),throughput_gb_per_s",
    "memory-usage": "device,memory,peak_bytes,peak_ns,left_bytes,at_peak_bytes,"
    "at_peak_allocations,allocations,largest_bytes,allocated_by",
    "nvtx": "range,domain,style,instances,total_range_ns,total_projected_ns,projected_med_ns,"
    "gpu_ops,share_of_busy",
    "nvtx --metrics": "range,domain,metric,samples,mean,minimum,maximum",
    "breakdown": "rank,device,window_ns,busy_ns,compute_ns,communication_ns,memory_ns,overlap_ns,"
    "exposed_communication_ns,copy_only_ns,opaque_graph_ns,idle_ns,launch_bound_ns,host_gap_ns",
    "breakdown --bins": "rank,device,start_ns,duration_ns,busy_share,compute_share,"
    "communication_share,memory_share",
    "gaps": "rank,device,start_ns,duration_ns,share_of_window,cause,host_activity,before,after",
    "gaps --by call": "rank,device,api,calls,total_ns,med_ns,max_ns,device_idle_ns,idle_share",
    "iterations": "rank,iteration,start_ns,duration_ns,busy_ns,compute_ns,"
    "exposed_communication_ns,idle_ns,source,device,phase",
    "instances": "rank,iteration,instance,start_ns,duration_ns,name,device,kind",
    "instances --bins": "name,low_ns,high_ns,count,share,mode,mode_median_ns",
    "launches": "rank,device,api,count,queued_count,api_med_ns,queue_med_ns,kernel_med_ns,"
    "total_med_ns,queue_max_ns,name",
    "launches --by stream": "rank,device,stream,operations,window_ns,queue_mean,queue_max,"
    "queue_max_at_ns,empty_share,launch_bound_ns,launch_bound_kernels",
    "graphs": "rank,device,graph,traced,replays,operations,launch_med_ns,replay_med_ns,"
    "replay_min_ns,replay_max_ns,busy_med_ns,gap_med_ns,chain_med_ns,total_ns,launched_in",
    "ranks": "rank,report,host,device,rank_source,offset_ns,drift_ppm,alignment,instances,"
    "residual_p05_ns,residual_p50_ns,residual_p95_ns,compute_ns,wait_ns,arrived_last_share,"
    "straggler",
    "ranks --by kernel": "name,ranks,total_med_ns,total_max_ns,slowest_rank,max_over_mean,"
    "instances_min,instances_max,compared",
    "ranks --by stage": "stage,ranks,window_ns,compute_ns,bubble_ns,bubble_share,transfer_ns",
    "ranks --by call": "rank,state,function,range,instances,wait_ns,longest_ns,caused_by,"
    "gpu_idle_ns",
    "collectives": "operation,group,ranks,instances,bytes,duration_med_ns,transfer_med_ns,"
    "jitter_med_ns,algbw_gb_per_s,busbw_gb_per_s,last_rank,last_share,abnormal",
    "select": "order,name,mangled,grid,block,instances,total_ns,share,cumulative_share,"
    "representative_ns,launch_skip,launch_count,command",
    "roofline": "id,kernel,grid,block,device,precision,level,flops_per_s,peak_flops_per_s,"
    "bytes_per_s,peak_bytes_per_s,arithmetic_intensity,roof_flops_per_s,roof_fraction,"
    "sol_compute_pct,sol_memory_pct,classification,duration_ns",
    "headroom": "name,share,nsys_med_ns,ncu_ns,sol_compute_pct,sol_memory_pct,roof_fraction,"
    "classification,ceiling_share,gain_share",
}


@pytest.mark.parametrize("columns", COLUMNS)
def test_the_columns_of_the_contract_come_first(columns: str) -> None:
    layouts = COMMANDS[columns.split(maxsplit=1)[0]].load().layouts
    found = [",".join(field.name for field in layout) for layout in layouts]
    wanted = COLUMNS[columns]
    assert any(each.startswith(wanted) for each in (found if " --" in columns else found[:1]))


def test_every_command_with_columns_has_a_contract() -> None:
    known = {name.split()[0] for name in COLUMNS} | {"stats", "export"}
    assert {name for name, each in COMMANDS.items() if each.load().layouts} == known


def test_summary_json_has_its_sections() -> None:
    document = ask("summarize", TRAINING, "--format", "json").json
    sections = [
        "header", "ranks", "breakdown", "kernels", "collectives", "memory", "nvtx", "findings",
        "next_steps", "idle", "gaps", "categories",
    ]  # fmt: skip
    start, end = ["schema", "tool_version", "inputs"], ["notes", "abstentions", "untrusted"]
    assert list(document) == [*start, *sections, *end]
    assert document["header"]["kernels"] == 5376
    assert [row["rank"] for row in document["ranks"]] == [0, 1, 2, 3]


def test_piped_output_is_whole_and_plain() -> None:
    answer = ask("summarize", TRAINING)
    assert "\x1b" not in answer.text
    assert "…" not in answer.text
    assert "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<" in answer.text
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("suffix", "given", "format_"),
    [
        (".csv", (), "csv"),
        (".json", (), "json"),
        (".md", (), "markdown"),
        (".MARKDOWN", (), "markdown"),
        (".parquet", (), "parquet"),
        (".txt", (), "table"),
        (".csv", ("--format", "json"), "json"),
    ],
)
def test_the_suffix_of_the_output_says_the_format_unless_it_is_given(
    tmp_path: Path, suffix: str, given: tuple[str, ...], format_: str
) -> None:
    by_suffix, by_name = tmp_path / f"by_suffix{suffix}", tmp_path / "by_name"
    ask("kernels", SINGLE, "-o", by_suffix, *given)
    ask("kernels", SINGLE, "--format", format_, "-o", by_name)
    assert by_suffix.read_bytes() == by_name.read_bytes()
