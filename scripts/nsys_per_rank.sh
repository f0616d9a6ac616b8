#!/usr/bin/env bash
# Profile a parallel job with one Nsight Systems report per rank. The launcher starts this script
# in every rank; ranks that are not wanted run the application untouched.
#
#   srun scripts/nsys_per_rank.sh -o run1 --below 8 python train.py
#   mpirun -n 16 scripts/nsys_per_rank.sh --one-per-node ./solver input     (PBS, PALS: mpiexec)
#   torchrun --nproc-per-node 8 --no-python scripts/nsys_per_rank.sh --only 0,7 python train.py
#
# Options, before the application:
#   -o NAME          reports are NAME_rank<N>.nsys-rep (default: profile); folders are made
#   --below N        only ranks below N
#   --only LIST      only these ranks: 0,4,8
#   --one-per-node   only the first rank of each node
#   --capture WHAT   only from cudaProfilerStart to cudaProfilerStop (WHAT: cudaProfilerApi), or
#                    only the first NVTX range of that name (WHAT: name or name@domain)
#   --trace LIST     what is traced (default: cuda,nvtx)
#   --tmp FOLDER     local disk for the raw data (default: TMPDIR, else what the scheduler gives)
#   --force          write over reports that exist
#   --nsys-option W  another word for nsys profile; may be repeated
#   --               end of options
#
# NSYS names the nsys to use (default: nsys). Conditions add up: --below 8 --one-per-node.
set -u

usage() {
  echo "nsys_per_rank.sh: $1" >&2
  sed -n '2,/^set -u/s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

first_of() {
  local name
  for name in "$@"; do
    if [ -n "${!name:-}" ]; then
      echo "${!name}"
      return
    fi
  done
}

need() {
  [ $# -ge 2 ] || usage "$1 needs a value"
}

name=profile below= only= one_per_node= capture= trace=cuda,nvtx tmp= force= extra=()
while [ $# -gt 0 ]; do
  case "$1" in
    -o) need "$@"; name=$2; shift 2 ;;
    --below) need "$@"; below=$2; shift 2 ;;
    --only) need "$@"; only=$2; shift 2 ;;
    --one-per-node) one_per_node=yes; shift ;;
    --capture) need "$@"; capture=$2; shift 2 ;;
    --trace) need "$@"; trace=$2; shift 2 ;;
    --tmp) need "$@"; tmp=$2; shift 2 ;;
    --force) force=yes; shift ;;
    --nsys-option) need "$@"; extra+=("$2"); shift 2 ;;
    --) shift; break ;;
    -*) usage "unknown option $1" ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || usage "no application"
[[ $below =~ ^[0-9]*$ ]] || usage "--below needs a number, not '$below'"
[[ $only =~ ^([0-9]+(,[0-9]+)*)?$ ]] || usage "--only needs ranks as 0,4,8, not '$only'"

# An inner launcher knows better than an outer one: mpirun inside an srun step.
rank=$(first_of RANK OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK MV2_COMM_WORLD_RANK PALS_RANKID \
  FLUX_TASK_RANK ALPS_APP_PE SLURM_PROCID)
local_rank=$(first_of LOCAL_RANK OMPI_COMM_WORLD_LOCAL_RANK MV2_COMM_WORLD_LOCAL_RANK \
  PMI_LOCAL_RANK MPI_LOCALRANKID PALS_LOCAL_RANKID FLUX_TASK_LOCAL_ID SLURM_LOCALID)
if [ -z "$rank" ]; then
  usage "no rank: start it with srun, mpirun, mpiexec or torchrun --no-python"
fi
if [ -n "$one_per_node" ] && [ -z "$local_rank" ]; then
  usage "--one-per-node: the launcher does not tell which rank of its node this is"
fi

wanted() {
  [ -z "$below" ] || [ "$rank" -lt "$below" ] || return 1
  [ -z "$only" ] || [[ ,$only, == *,$rank,* ]] || return 1
  [ -z "$one_per_node" ] || [ "$local_rank" -eq 0 ]
}

wanted || exec "$@"

# nsys collects below TMPDIR: a local disk, and a folder of each rank's own.
tmp=${tmp:-$(first_of TMPDIR SLURM_TMPDIR PBS_JOBFS LOCAL_SCRATCH SCRATCH_LOCAL)}
TMPDIR=${tmp:-/tmp}/nsys-${USER:-$(id -u)}-rank$rank
export TMPDIR
mkdir -p "$TMPDIR" "$(dirname "$name")" || exit 1

words=(profile --trace="$trace" --output="${name}_rank$rank" --sample=none --cpuctxsw=none)
[ -z "$force" ] || words+=(--force-overwrite=true)
case "$capture" in
  "") ;;
  cudaProfilerApi) words+=(--capture-range=cudaProfilerApi --capture-range-end=stop) ;;
  *)
    # names that the application did not register are found, too
    words+=(--capture-range=nvtx --nvtx-capture="$capture" --capture-range-end=stop)
    words+=(--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0)
    ;;
esac
exec "${NSYS:-nsys}" "${words[@]}" ${extra[@]+"${extra[@]}"} "$@"
