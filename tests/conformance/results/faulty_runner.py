"""A runner with a client that has the mistakes named on its command line. It needs no packages.

index: calls are put together by their index alone; without one, it raises.
type: each call has to have a type, or it raises.
usage: usage is always lost.
end: a stream that breaks off is taken for an answer.
refuses: each stream is an error, and nothing else.
crash: the runner itself raises, outside the client.
unsupported: reasoning has no place.
shared: streams share their text.
invalid: answers have a field that there is not.
interrupt: sends Ctrl-C to mockllm after the third case.
silent: sends Ctrl-C to mockllm in place of a hello, prints its own id on standard error, and hangs.
"""

import base64
import json
import os
import signal
import sys
import types

MISTAKES = set(sys.argv[1:])

CLIENT = """
import json


class Client:
    seen = []

    def __init__(self, mistakes):
        self.mistakes, self.calls, self.data = mistakes, {}, b""
        self.text = self.reasoning = ""
        self.finish = self.usage = None

    def feed(self, chunk):
        self.data += chunk

    def lines(self):
        text = self.data.decode("utf-8-sig")
        return text.replace("\\r\\n", "\\n").replace("\\r", "\\n").split("\\n")

    def outcome(self):
        errors = []
        if "refuses" in self.mistakes:
            return {"errors": ["the arguments are no JSON"]}
        for line in self.lines():
            if line.startswith("data:") and line[5:].strip() not in ("", "[DONE]"):
                chunk = json.loads(line[5:])
                if "error" in chunk:
                    errors.append(str(chunk["error"]))
                self.add(chunk)
        if self.finish is None and "end" not in self.mistakes:
            errors.append("the stream is cut off")
        found = {"text": self.text, "finish": self.finish, "errors": errors}
        if "unsupported" not in self.mistakes:
            found["reasoning"] = self.reasoning
        found["usage"] = None if "usage" in self.mistakes else self.usage
        return {**found, "tool_calls": list(self.calls.values()), "role": "assistant"}

    def add(self, chunk):
        usage = chunk.get("usage")
        if usage:
            self.usage = {"input": usage["prompt_tokens"], "output": usage["completion_tokens"]}
        for choice in chunk.get("choices") or []:
            delta = choice.get("delta") or {}
            self.text += delta.get("content") or ""
            if "shared" in self.mistakes:
                self.seen.append(delta.get("content") or "")
                self.text = "".join(self.seen)
            self.reasoning += delta.get("reasoning_content") or ""
            for fragment in delta.get("tool_calls") or []:
                self.add_call(fragment)
            self.finish = choice.get("finish_reason") or self.finish

    def add_call(self, fragment):
        call = self.calls.setdefault(self.key(fragment), {"id": "", "name": "", "arguments": ""})
        if "type" in self.mistakes and fragment.get("id"):
            fragment["type"]
        function = fragment.get("function") or {}
        call["id"] = call["id"] or fragment.get("id") or ""
        call["name"] = call["name"] or function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""

    def key(self, fragment):
        if "index" in self.mistakes:
            return fragment["index"]
        known = list(self.calls)
        new = fragment.get("id") and all(fragment["id"] != one["id"] for one in self.calls.values())
        if fragment.get("index") is None:
            return len(known) if new else known[-1]
        return fragment["index"]
"""


def client_class():
    """The client, in a file of its own."""
    module = types.ModuleType("client")
    exec(compile(CLIENT, "client.py", "exec"), module.__dict__)
    return module.Client


def place(error):
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code
    return f"{code.co_filename}:{step.tb_lineno} in {code.co_name}"


def outcome(kind, case):
    client = kind(MISTAKES)
    try:
        for item in case["feed"]:
            client.feed(base64.b64decode(item))
        if "crash" in MISTAKES and client.data.count(b"get_weather") > 1:
            raise RuntimeError("the runner is wrong")
        return {**client.outcome(), **({"colour": "red"} if "invalid" in MISTAKES else {})}
    except Exception as error:  # noqa: BLE001 - whatever a client raises
        message = f"{type(error).__name__}: {error}"
        return {"crash": {"message": message, "raised": place(error)}}


def main():
    kind = client_class()
    question = json.loads(sys.stdin.readline())
    if question["api"] != "chat" or question["level"] not in ("bytes", "payloads", "http"):
        sys.exit(f"this runner has no {question['api']} at level {question['level']}")
    if "silent" in MISTAKES:
        print(os.getpid(), file=sys.stderr, flush=True)
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    unsupported = ["reasoning"] if "unsupported" in MISTAKES else []
    client = {"name": "faulty", "version": "0.1", "language": "python"}
    answer({"mockllm": 1, "client": client, "unsupported": unsupported, "intermediate": False})
    for number, line in enumerate(sys.stdin, 1):
        if number == 4 and "interrupt" in MISTAKES:
            os.kill(os.getppid(), signal.SIGINT)
        case = json.loads(line)
        answer({"id": case["id"], **outcome(kind, case)})


def answer(value):
    print(json.dumps(value), flush=True)


main()
