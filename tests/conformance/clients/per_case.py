"""A client that is a program: one case from the environment, one outcome on standard output."""

import json
import os
import subprocess
import sys

from http_runner import outcome

if "die" in sys.argv:
    sys.exit(5)
if "hang" in sys.argv:
    # A program of its own that keeps the output open, as a shell or npx starts one.
    subprocess.run([sys.executable, "-c", "import time; time.sleep(3600)"], check=False)
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
