"""Prints a chart as Helm renders it: `render.py CHART VALUES`, where VALUES are JSON.

The problems of a strict `helm lint` come to standard error, and make the exit code 1.
"""

import json
import sys

import helm_python

chart, values = sys.argv[1], json.loads(sys.argv[2])
found = helm_python.lint(chart, values, strict=True)
problems = [one for one in found["messages"] if one["severity"] > 1] + found["errors"]
if problems:
    sys.exit("\n".join(map(str, problems)))
with helm_python.Chart.load(chart) as loaded:
    print("---\n".join(loaded.render(values, name="mockllm", namespace="tests").values()))
