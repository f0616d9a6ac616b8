"""NVIDIA's command-line tools and the files that they make: found, run, checked, locked."""
