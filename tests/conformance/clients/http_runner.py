"""A runner at level http: sends a request with the standard library, reads the stream with the
client of examples/runners. Faults by name."""

import json
import os
import sys
import threading
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "runners" / "python"))

from client import create

FAULTS = set(sys.argv[1:])


def outcome(case):
    client = create("chat")
    if "no-request" in FAULTS:
        return client.close()
    body = {
        "model": case["model"],
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": case["prompt"]}],
    }
    if case["tools"]:
        body["tools"] = [{"type": "function", "function": tool} for tool in case["tools"]]
    if "no-usage" in FAULTS:
        del body["stream_options"]
    path = "/models" if "other-route" in FAULTS else "/chat/completions"
    request = urllib.request.Request(
        case["base_url"] + path,
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer key"},
    )
    with urllib.request.urlopen(request, timeout=case["deadline"]) as answer:
        while data := answer.read1(1000):
            client.feed_bytes(data)
    if "die" in FAULTS and "two-same" in case.get("case", ""):
        if "inside" in FAULTS:
            print('{"id": ', end="", flush=True)
        os._exit(3)
    if "again" in FAULTS:
        with urllib.request.urlopen(request, timeout=case["deadline"]) as answer:
            answer.read()
    return client.close()


LOCK = threading.Lock()


def work(case):
    try:
        found = outcome(case)
    except Exception as error:  # noqa: BLE001
        found = {"errors": [f"{type(error).__name__}: {error}"]}
    with LOCK:
        print(json.dumps({"id": case["id"], **found}), flush=True)


def main():
    question = json.loads(sys.stdin.readline())
    if (question["api"], question["level"]) != ("chat", "http"):
        sys.exit("this runner has the API chat, at level http")
    print(json.dumps({"mockllm": 1, "client": {"name": "urllib"}}), flush=True)
    threads = []
    for line in sys.stdin:
        if "threads" in FAULTS:
            threads.append(threading.Thread(target=work, args=(json.loads(line),)))
            threads[-1].start()
        else:
            work(json.loads(line))
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
