"""Runs the client in `client.py` for `mockllm check`: reads a case a line, answers in a line.

The protocol is described in docs/runner-protocol.md. Python 3.9 or newer, no dependencies.
"""

import base64
import json
import sys
import traceback

from client import APIS, CLIENT, create


def main():
    hello = json.loads(sys.stdin.readline())
    api, level = hello["api"], hello["level"]
    if api not in APIS or level not in ("bytes", "payloads"):
        sys.exit(f"this runner has no {api} at level {level}; it has: {', '.join(APIS)}")
    answer({"mockllm": 1, "client": CLIENT, "unsupported": [], "intermediate": False})
    for line in sys.stdin:
        case = json.loads(line)
        answer({"id": case["id"], **outcome(create(api), level, case["feed"])})


def outcome(client, level, feed):
    try:
        for item in feed:
            if level == "bytes":
                client.feed_bytes(base64.b64decode(item))
            else:
                client.feed_event(*item)
        return client.close()
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raised = f"{frame.filename}:{frame.lineno} in {frame.name}"
        return {"crash": {"message": f"{type(error).__name__}: {error}", "raised": raised}}


def answer(value):
    print(json.dumps(value), flush=True)


main()
