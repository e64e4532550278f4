"""Runs the client for `mockllm check --http`: a case a line, an outcome a line, side by side.

Each case has a thread and an event loop of its own, so that what it leaves open can be counted.
"""

import asyncio
import json
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import client
import httpx
from apis import APIS

DECLARED = {
    "longest_wait": 60.0,
    "final_errors": ["insufficient_quota"],
    "cancel": ["leave"],
}
CLIENT = {
    "name": "resilient-client",
    "version": "1.0",
    "language": "python",
    "entry_point": "ResilientClient.stream()",
    "adapter": "runner.py",
}
SETTINGS = ("tries", "idle_timeout", "deadline")
BACKOFF = 0.1  # seconds; the default would only make the check longer


def run(case, client=client):
    """The outcome of a case; `client` is the module under test."""
    try:
        return asyncio.run(play(case, client))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raised = f"{frame.filename}:{frame.lineno} in {frame.name}"
        return {"crash": {"message": f"{type(error).__name__}: {error}", "raised": raised}}


async def play(case, client):
    settings = {key: case[key] for key in SETTINGS if case.get(key) is not None}
    opened = client.ResilientClient(
        case["api"], case["base_url"], "mock-key", backoff=BACKOFF, **settings
    )
    requests = [outcome(opened, case, client) for _ in range(case.get("requests") or 1)]
    async with opened:
        if case.get("together"):
            outcomes = await asyncio.gather(*requests)
        else:
            outcomes = [await one for one in requests]
    left = {
        "tasks": await tasks_left(),
        "connections": len(opened.http._transport._pool.connections),
    }
    return {**outcomes[-1], "earlier": outcomes[:-1], "left": left}


async def tasks_left():
    """How many tasks there are besides this one; those that only end generators get their time."""
    for _ in range(50):
        if len(asyncio.all_tasks()) == 1:
            return 0
        await asyncio.sleep(0.01)
    return len(asyncio.all_tasks()) - 1


async def outcome(opened, case, client):
    """The outcome of one request, as a user of the client sees it."""
    shown, partial, answer, errors = "", None, None, []
    try:
        async with opened.stream(case["model"], case["prompt"], case["tools"]) as pieces:
            async for piece in pieces:
                if piece is client.RESTART:
                    shown = ""
                elif isinstance(piece, str):
                    shown += piece
                else:
                    answer = piece
                if case.get("cancel"):
                    break
    except client.ClientError as error:
        errors = [{"message": str(error), "type": type(error).__name__, "kind": error.kind}]
        partial = error.partial
    except httpx.HTTPError as error:  # not an error of the client's own
        errors = [{"message": str(error), "type": type(error).__name__, "kind": None}]
    return {
        "text": answer.text if answer else shown if partial is None else partial,
        "handed_on": shown,
        "partial": answer is None,
        "tool_calls": answer.tool_calls() if answer else [],
        "finish": answer.finish if answer else None,
        "errors": errors,
    }


def main():
    hello = json.loads(sys.stdin.readline())
    if hello["api"] not in APIS or hello["level"] != "http":
        sys.exit(f"this runner has the level http only, and the APIs {', '.join(APIS)}")
    lock = Lock()

    def say(value):
        with lock:
            print(json.dumps(value), flush=True)

    say({"mockllm": 1, "client": CLIENT, "resilience": DECLARED})
    with ThreadPoolExecutor(64) as pool:
        for line in sys.stdin:
            case = json.loads(line)
            pool.submit(lambda case=case: say({"id": case["id"], **run(case)}))


if __name__ == "__main__":
    main()
