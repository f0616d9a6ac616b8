"""A fuzzer: broken reports of every kind, every command, and a judge. `python -m fuzzer -h`."""
