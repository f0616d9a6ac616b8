"""The sections of the page that one command answers each, in their order."""

from __future__ import annotations

from functools import partial

from nsightpy.commands.api import api
from nsightpy.commands.collectives.command import collectives
from nsightpy.commands.gaps import gaps
from nsightpy.commands.graphs import graphs
from nsightpy.commands.histogram import histogram
from nsightpy.commands.imbalance import imbalance
from nsightpy.commands.inference_steps import inference_steps
from nsightpy.commands.iterations import iterations
from nsightpy.commands.kernels import kernels
from nsightpy.commands.launch_queues import launch_queues
from nsightpy.commands.launches import launches
from nsightpy.commands.memory import memory
from nsightpy.commands.memory_usage.command import memory_usage
from nsightpy.commands.modules import modules
from nsightpy.commands.nvtx import nvtx
from nsightpy.commands.nvtx_metrics import nvtx_metrics
from nsightpy.commands.operators import operators
from nsightpy.commands.ranks import ranks
from nsightpy.commands.report import sentences
from nsightpy.commands.report.pictures import pace_of_longest
from nsightpy.commands.report.questions import Question, columns
from nsightpy.commands.sync_waits import sync_waits
from nsightpy.commands.utilization import utilization

ITERATIONS = Question(
    "iterations",
    "Iterations",
    iterations,
    sentences.iterations,
    "Where the run repeats itself, and what each repetition's time went to. The steady state is "
    "the iterations without warm-up; the overview above is about it where there is one.",
    "No iterations found: no range, collective or kernel sequence repeats through most of the "
    "run. --nvtx RANGE names one.",
    main=("rank", "iteration", "start_ns", "duration_ns", "compute_ns", "idle_ns", "phase"),
    picture="iterations",
    caption="Each bar is one iteration; its parts add up to its duration.",
)
RANKS = Question(
    "ranks",
    "Ranks",
    ranks,
    sentences.ranks,
    "All ranks on one clock, which collectives give. compute: the union of a rank's own kernels. "
    "wait: time inside collectives before the last rank arrived. comes last: in how many of all "
    "collectives; a straggler comes last in most of those in which others wait, and waits less.",
    "There is one rank only: give the reports of all ranks, or their folder.",
    main=("rank", "host", "device", "compute_ns", "wait_ns", "arrived_last_share", "straggler"),
    most=256,
    keeps=128,
    show=lambda table: len(table) > 1,
)
COLLECTIVES = Question(
    "collectives",
    "Collectives",
    collectives,
    sentences.collectives,
    "One row per operation, size and group of ranks. transfer: the shortest participant's "
    "duration; wait: what a rank waits beyond it. Algorithm bandwidth is the size over the "
    "transfer, bus bandwidth counts as nccl-tests does; both in units of 10^9 bytes. abnormal: "
    "instances far longer than the median.",
    "No collective ran: none of the recorded kernels is one of NCCL or RCCL.",
    main=columns(
        "operation group instances bytes transfer_med_ns jitter_med_ns busbw_gb_per_s "
        "last_rank last_share abnormal"
    ),
    picture="collectives",
    caption="Bus bandwidth over message size, by group and operation; larger points took longer.",
)
UTILIZATION = Question(
    "utilization",
    "Utilization over time",
    utilization,
    sentences.utilization,
    "The share of each moment in which a device was busy, computed and communicated, on the clock "
    "of all ranks; below them sampled GPU metrics and network counters where the capture has some.",
    "No device did anything.",
    picture="utilization",
    caption="A row a device, time to the right; the colour is the share of that time.",
    most=0,
)
HISTOGRAM = Question(
    "histogram",
    "Durations of kernels",
    partial(histogram, top=4),
    sentences.histogram,
    "How the durations of the kernels with the most time are distributed, and the modes that they "
    "cluster around. Several modes are several sizes, or waiting.",
    "No kernel was recorded.",
    picture="histogram",
    caption="Bins of equal ratio; the modes are named.",
    most=0,
)
PACE = Question(
    "pace",
    "Pace",
    pace_of_longest,
    sentences.pace,
    "What takes the most time, a collective where ranks share some, instance by instance: whether "
    "it is steady, grows, or differs between ranks.",
    "No kernel was recorded.",
    picture="pace",
    caption="Each point is one instance.",
    most=0,
)
IMBALANCE = Question(
    "imbalance",
    "Imbalance between ranks",
    imbalance,
    sentences.imbalance,
    "Kernels whose total time differs between ranks. max over mean: the slowest rank's time over "
    "the mean of all. instances tell whether a rank runs a kernel more often, or slower.",
    "Imbalance needs at least two ranks: give their reports, or their folder.",
    main=("name", "total_med_ns", "total_max_ns", "slowest_rank", "max_over_mean"),
)
KERNELS = Question(
    "kernels",
    "Kernels",
    kernels,
    sentences.kernels,
    "All kernels by GPU time over the whole capture and all ranks, as nsys stats "
    "(cuda_gpu_kern_sum) counts it; kernels that ran side by side count each.",
    "No kernel was recorded.",
    main=("Time (%)", "Total Time (ns)", "Instances", "Med (ns)", "Max (ns)", "Name"),
)
OPERATORS = Question(
    "operators",
    "PyTorch operators",
    operators,
    sentences.operators,
    "Operators by the device time that they launched themselves, as torch's key_averages counts "
    "it. model FLOP: what the shapes ask for, whatever the kernels did.",
    "The capture holds no operators.",
    main=("operator", "calls", "host_self_ns", "device_self_ns", "device_total_ns", "mfu"),
)
GAPS = Question(
    "gaps",
    "Idle intervals",
    gaps,
    sentences.gaps,
    "The longest intervals in which a device did nothing, the finding that each counts for, and "
    "what the launching thread did meanwhile. Starts are moments on the clock of all ranks.",
    "Every device worked without a break.",
    main=("rank", "device", "start_ns", "duration_ns", "share_of_window", "cause", "host_activity"),
)
LAUNCHES = Question(
    "launches",
    "Launches",
    launches,
    sentences.launches,
    "From the API call (api) through the wait in the stream (queue) to the kernel. A long wait "
    "in the queue is good: the host runs ahead. Where it is near zero, the host is the limit.",
    "No kernel could be joined with the call that launched it.",
    main=("rank", "api", "count", "api_med_ns", "queue_med_ns", "kernel_med_ns", "name"),
    most=60,
)
QUEUES = Question(
    "launch-queues",
    "Launch queues",
    launch_queues,
    sentences.queues,
    "How much work was queued on each stream. empty: the share of the stream's window in which "
    "nothing was queued or ran. launch bound: time before kernels that started as soon as they "
    "were launched.",
    "The capture recorded no CUDA API calls: queues are not known.",
    main=("rank", "device", "stream", "operations", "queue_max", "empty_share", "launch_bound_ns"),
    picture="queues",
    caption="Operations that were launched and had not begun, over time, by stream.",
    most=60,
)
SYNC = Question(
    "sync-waits",
    "Synchronising calls",
    sync_waits,
    sentences.sync_waits,
    "Calls in which the host waited for the GPU. device idle: for how long the device did "
    "nothing inside them and until the next launch reached it.",
    "No synchronising call was recorded.",
    main=("rank", "device", "api", "calls", "total_ns", "max_ns", "device_idle_ns", "idle_share"),
    most=60,
)
API = Question(
    "api",
    "CUDA API calls",
    api,
    sentences.api,
    "API functions by host time, as nsys stats (cuda_api_sum) counts it, over all threads.",
    "No CUDA API call was recorded.",
    main=("Time (%)", "Total Time (ns)", "Num Calls", "Med (ns)", "Max (ns)", "Name"),
    most=40,
)
MODULES = Question(
    "modules",
    "Modules",
    modules,
    sentences.modules,
    "nn.Module calls of PyTorch traces, else NVTX ranges, as a tree: a module is its path. own: "
    "launched under no module inside it. attributed: what autograd's thread launched for it.",
    "The capture holds no modules.",
    main=columns(
        "module calls host_total_ns device_total_ns device_self_ns attributed_ns "
        "share_of_device_time"
    ),
)
STEPS = Question(
    "inference-steps",
    "Steps of inference",
    inference_steps,
    sentences.steps,
    "The annotated steps of vLLM and SGLang in time order. busy: for how long any operation ran "
    "that the step launched; launching: the length of the calls that launched them; tokens/s: over "
    "the time from the step's begin to the end of that work, at most to the next step's begin.",
    "No step of vLLM or SGLang is annotated.",
    main=("rank", "step", "phase", "requests", "tokens", "host_ns", "busy_ns", "tokens_per_s"),
)
GRAPHS = Question(
    "graphs",
    "CUDA graphs",
    graphs,
    sentences.graphs,
    "CUDA graphs by the time of their replays. busy: for how long any operation ran, gap: the "
    "rest of the replay; chain: the work on the critical chain. Graphs traced as a whole do not "
    "say what ran inside.",
    "No CUDA graph was launched.",
    main=columns(
        "rank graph traced replays operations launch_med_ns replay_med_ns gap_med_ns total_ns "
    ),
    most=60,
)
RANGES = Question(
    "nvtx",
    "Code ranges",
    nvtx,
    sentences.ranges,
    "Ranges by the GPU time that their thread launched inside them. projected: from the first "
    "start to the last end of that work. attributed: launched by other threads while the range's "
    "own thread waited, as a framework's backward pass is.",
    "The capture holds no code ranges.",
    main=("range", "instances", "total_range_ns", "total_projected_ns", "gpu_ops", "share_of_busy"),
)
METRICS = Question(
    "nvtx-metrics",
    "GPU metrics of code ranges",
    nvtx_metrics,
    sentences.metrics,
    "Metrics that nsys sampled on the GPU, averaged over the time of each range's GPU work.",
    "The capture holds no GPU metrics.",
)
MEMORY = Question(
    "memory",
    "Copies and memory sets",
    partial(memory, by="memory"),
    sentences.memory,
    "Copies by direction and kind of memory over the whole capture, as nsys stats counts them, "
    "with their throughput. exposed: for how long copies ran with no kernel beside them.",
    "No copy and no memory set was recorded.",
    main=(
        "Operation",
        "memory",
        "Count",
        "Total Time (ns)",
        "exposed_ns",
        "Total (MB)",
        "throughput_gb_per_s",
    ),
    command="memory --by memory",
)
MEMORY_USAGE = Question(
    "memory-usage",
    "Allocated memory",
    memory_usage,
    sentences.memory_usage,
    "The most that was allocated at a time, who held it then, and what was left at the end. An "
    "allocator is the innermost operator, else range, else API function, or the Python line.",
    "The capture recorded no allocations.",
    main=columns("rank device memory peak_bytes at_peak_bytes at_end_bytes allocated_by"),
    picture="memory",
    caption="Allocated memory over time, by who holds it.",
)
QUESTIONS = (
    UTILIZATION,
    ITERATIONS,
    STEPS,
    RANKS,
    COLLECTIVES,
    IMBALANCE,
    KERNELS,
    HISTOGRAM,
    PACE,
    OPERATORS,
    MODULES,
    RANGES,
    METRICS,
    GAPS,
    SYNC,
    LAUNCHES,
    QUEUES,
    GRAPHS,
    API,
    MEMORY,
    MEMORY_USAGE,
)
# The ids in the order of the page: what ncu measured follows the kernels.
ORDER = tuple(
    name
    for question in QUESTIONS
    for name in (question.id, *(("headroom", "roofline") if question is KERNELS else ()))
)
