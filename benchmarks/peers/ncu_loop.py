"""What a user would write: every metric of every kernel through NVIDIA's ncu_report.

python benchmarks/peers/ncu_loop.py REPORT...
"""

import sys

import ncu_report

rows = []
for path in sys.argv[1:]:
    for part in ncu_report.load_report(path):
        for place in range(len(part)):
            action = part[place]
            kernel = action.name(action.NameBase_DEMANGLED)
            for name in action.metric_names():
                metric = action[name]
                rows.append((kernel, name, metric.value(), metric.unit()))
print(f"{len(rows)} metrics")
