"""A client that is a program: one case from the environment, one outcome on standard output."""

import json
import os
import sys

from http_runner import outcome

if "die" in sys.argv:
    sys.exit(5)
print("a line before the outcome")
case = {
    "base_url": os.environ["MOCKLLM_BASE_URL"],
    "model": os.environ["MOCKLLM_MODEL"],
    "prompt": os.environ["MOCKLLM_PROMPT"],
    "tools": json.loads(os.environ["MOCKLLM_TOOLS"]),
    "deadline": 60,
}
assert os.environ["OPENAI_BASE_URL"] == case["base_url"]
print("no outcome" if "text" in sys.argv else json.dumps(outcome(case)))
