"""A runner around `client.chat.completions.create(stream=True)` of the OpenAI SDK, which joins the
pieces of an answer as most of its users do. `defaults` as an argument: the SDK's own settings."""

import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai

DEFAULTS = "defaults" in sys.argv
KINDS = (
    (openai.APITimeoutError, "timeout"),
    (openai.APIConnectionError, "network"),
    (openai.RateLimitError, "rate_limit"),
    (openai.InternalServerError, "server"),
    (openai.APIStatusError, "request"),
)


def make(case):
    """The client of a case, with the settings that it asks for."""
    options = {"base_url": case["base_url"], "api_key": "key"}
    if not DEFAULTS:
        idle = case.get("idle_timeout")
        if case.get("tries"):
            options["max_retries"] = case["tries"] - 1
        if idle:
            options["timeout"] = httpx.Timeout(case["deadline"], read=idle)
    return openai.OpenAI(**options)


def outcome(client, case):
    """One request, as a user of the SDK makes it."""
    text, calls, finish, errors = "", {}, None, []
    arguments = {"model": case["model"], "messages": [{"role": "user", "content": case["prompt"]}]}
    if case["tools"]:
        arguments["tools"] = [{"type": "function", "function": tool} for tool in case["tools"]]
    try:
        with client.chat.completions.create(stream=True, **arguments) as stream:
            for piece in stream:
                for choice in piece.choices:
                    text += choice.delta.content or ""
                    for part in choice.delta.tool_calls or ():
                        add(calls, part)
                    finish = choice.finish_reason or finish
                if case.get("cancel") and (text or calls):
                    break
    except openai.OpenAIError as error:
        errors.append(reported(error))
    except (httpx.HTTPError, ValueError) as error:
        errors.append({"message": str(error), "type": type(error).__name__})
    return {
        "text": text,
        "handed_on": text,
        "partial": bool(errors),
        "tool_calls": [] if errors else list(calls.values()),
        "finish": finish,
        "errors": errors,
    }


def add(calls, part):
    """Joins a fragment of a call to its call."""
    call = calls.setdefault(part.index, {"id": None, "name": "", "arguments": ""})
    call["id"] = call["id"] or part.id
    if part.function is not None:
        call["name"] += part.function.name or ""
        call["arguments"] += part.function.arguments or ""


def reported(error):
    """An error of the SDK; what its class says of the cause."""
    kind = next((kind for one, kind in KINDS if isinstance(error, one)), None)
    return {"message": str(error), "type": type(error).__name__, "kind": kind}


def run(case):
    """The outcome of a case."""
    with make(case) as client:
        count = case.get("requests") or 1
        if case.get("together"):
            with ThreadPoolExecutor(count) as pool:
                outcomes = list(pool.map(lambda _: outcome(client, case), range(count)))
        else:
            outcomes = [outcome(client, case) for _ in range(count)]
    left = len(client._client._transport._pool.connections)
    return {**outcomes[-1], "earlier": outcomes[:-1], "left": {"connections": left}}


def main():
    json.loads(sys.stdin.readline())
    lock = threading.Lock()

    def say(value):
        with lock:
            print(json.dumps(value), flush=True)

    def work(case):
        try:
            say({"id": case["id"], **run(case)})
        except Exception as error:  # noqa: BLE001 - a crash of the client is an outcome
            say({"id": case["id"], "crash": f"{type(error).__name__}: {error}"})

    client = {
        "name": "openai",
        "version": openai.__version__,
        "language": "python",
        "entry_point": "chat.completions.create(stream=True)",
        "adapter": "openai_runner.py",
    }
    declared = {"tries": 3, "idle_timeout": 600.0, "longest_wait": 60.0} if DEFAULTS else {}
    say({"mockllm": 1, "client": client, "resilience": declared})
    with ThreadPoolExecutor(64) as pool:
        for line in sys.stdin:
            pool.submit(work, json.loads(line))


if __name__ == "__main__":
    main()
