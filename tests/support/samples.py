"""The reports in sample_reports, by what they are."""

from tests.support.reports import ROOT

SAMPLES = ROOT / "sample_reports"
# A job of four ranks, one process, and two ranks as PyTorch traced them.
TRAINING, SINGLE = SAMPLES / "training_4rank", SAMPLES / "single_process.sqlite"
TRACES, SNAPSHOT = SAMPLES / "torch_2rank", SAMPLES / "training_memory.pickle"
# What ncu measured: kernels of a benchmark, and those of the job.
NCU, MEASURED = SAMPLES / "kernels_h100.ncu.csv", SAMPLES / "training_4rank.ncu.csv"
