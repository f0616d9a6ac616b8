"""One function over many reports of any kind: in this process, in worker processes, or on Dask.

Each way yields (report, outcome) as they come. Only paths travel to the workers and results back.
"""
