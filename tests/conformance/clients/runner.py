"""A runner around the Python client of examples/runners, with faults by name: `runner.py FAULT...`.

It imports the standard library only, so that it starts at once.
"""

import atexit
import base64
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "runners" / "python"))

from client import create

FAULTS = set(sys.argv[1:])
NUMBERS = [0]
"""How many cases were answered."""


if "utf-16" in FAULTS:
    sys.stdout.reconfigure(encoding="utf-16")
if "latin-1" in FAULTS:
    sys.stdout.reconfigure(encoding="latin-1", errors="replace")


def send(message):
    hello = "mockllm" in message
    ascii_only = not FAULTS & {"latin-1", "utf-16"}
    line = json.dumps(message, ensure_ascii=ascii_only)
    if "no-flush" in FAULTS or ("flushes-hello" in FAULTS and not hello):
        atexit.register(print, line)  # as a buffer that is written at the end
    else:
        print(line, flush=True)


SHARED = []
"""The client that a runner with the fault `leak` has for all cases."""


def outcome(api, message, level):
    client = create(api)
    if "leak" in FAULTS:
        SHARED.append(client)
        client = SHARED[0]
    for item in message["feed"]:
        if level == "payloads":
            client.feed_event(*item)
        else:
            client.feed_bytes(base64.b64decode(item))
    return client.close()


def faulty(message, answer):
    """Whether the fault of the program has dealt with a case; `answer` may be changed."""
    case = message["case"]
    if "die" in FAULTS and "two-same" in case:
        os._exit(3)
    if "hang" in FAULTS and "two-same" in case:
        time.sleep(3600)
    if "silent" in FAULTS:
        return True
    if "mute-death" in FAULTS:
        os._exit(6)
    if "late-death" in FAULTS and "two-same" in case:
        send(answer)
        time.sleep(0.05)  # so that the next case is here
        os._exit(7)
    if "tired" in FAULTS and NUMBERS[0] % 4 == 3:
        os._exit(8)
    NUMBERS[0] += 1
    if "endless" in FAULTS:
        while True:
            print("a line for people", flush=True)
    if "list-id" in FAULTS:
        answer["id"] = [message["id"]]
    if "shout" in FAULTS:
        print("a line for people", flush=True)
    if "text-id" in FAULTS:
        answer["id"] = str(message["id"])
    if "other-id" in FAULTS:
        answer["id"] = message["id"] + 1000
    if "twice" in FAULTS:
        send(answer)
    if "wrong-type" in FAULTS:
        answer["tool_calls"] = "none"
    if "no-usage" in FAULTS:
        del answer["usage"]
    if "sums" in FAULTS:
        answer["usage"]["input"] += 12 * NUMBERS[0]
    if "mojibake" in FAULTS:
        answer["text"] = answer["text"].encode().decode("latin-1")
    if "question-marks" in FAULTS:
        answer["text"] = answer["text"].encode("ascii", "replace").decode()
    if "nothing" in FAULTS:
        for name in [name for name in answer if name != "id"]:
            del answer[name]
    return False


def main():
    question = json.loads(sys.stdin.readline())
    if "no-hello" in FAULTS:
        return
    once = next((Path(fault[5:]) for fault in FAULTS if fault.startswith("once=")), None)
    if once is not None:
        try:
            once.touch(exist_ok=False)
        except FileExistsError:
            sys.exit(9)
    known = {"api": {"chat"}, "level": {"bytes", "payloads"}}
    for key, values in known.items():
        if question[key] not in values and f"any-{key}" not in FAULTS:
            sys.exit(0 if "refuses-with-0" in FAULTS else f"there is no {question[key]} here")
    version = 2 if "version" in FAULTS else 1
    client = {} if "no-name" in FAULTS else {"name": "reference", "language": "python"}
    unsupported = ["usage"] if "unsupported" in FAULTS else []
    send({"mockllm": version, "client": client, "unsupported": unsupported})
    held, most = [], 3
    for line in sys.stdin:
        message = json.loads(line)
        found = outcome(question["api"], message, question["level"])
        answer = {"id": message["id"], **found}
        if faulty(message, answer):
            continue
        if "backwards" in FAULTS and most:
            held.append(answer)
            most -= 1
            continue
        send(answer)
        while held:
            send(held.pop())
    while held:
        send(held.pop())
    if "stays" in FAULTS:
        time.sleep(3600)
    if "exit-code" in FAULTS:
        sys.exit(4)


main()
