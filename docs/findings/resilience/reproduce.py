"""Plays broken streams to clients and writes log.txt: python reproduce.py [WORD...]

Without words, everything is played; with words, what has all of them in its line is printed. PYTHON
and NODE are the programs with the clients; some clients have one of their own (`APART`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
APART = {"smolagents": "PYTHON_FRAMEWORKS", "llama_index": "PYTHON_FRAMEWORKS",
         "litellm": "PYTHON_LITELLM"}  # fmt: skip

CUTS = "orderly orderly-call whole-call"
BODIES = "html json empty"

PYTHON = {
    "openai": ("chat", CUTS),
    "openai_create": ("chat", CUTS),
    "responses": ("responses", "orderly"),
    "anthropic": ("anthropic", f"{CUTS} close reset"),
    "gemini": ("gemini", "orderly whole-call close reset empty wait idle leave"),
    "langchain": ("chat", f"{CUTS} leave"),
    "langchain_anthropic": ("anthropic", f"{CUTS} close reset leave"),
    "pydantic_ai": ("chat", CUTS),
    "pydantic_ai_responses": ("responses", CUTS),
    "pydantic_ai_anthropic": ("anthropic", CUTS),
    "pydantic_ai_tool": ("chat", "call orderly-call whole-call"),
    "agents": ("chat", f"{CUTS} {BODIES} leave drop"),
    "agents_responses": ("responses", "orderly leave drop"),
    "agents_tool": ("chat", "call orderly-call whole-call"),
    "litellm": ("chat", f"{CUTS} reset refuse bad busy wait {BODIES} leave"),
    "smolagents": ("chat", f"{CUTS} reset {BODIES} leave"),
    "llama_index": ("chat", f"orderly-call reset {BODIES} leave"),
}
NODE = {
    "openai": ("chat", "orderly reset stall wait drop"),
    "responses": ("responses", "orderly whole-call reset stall wait drop"),
    "anthropic": ("anthropic", "orderly reset stall drop"),
    "gemini": ("gemini", "orderly whole-call reset empty wait slow leave drop"),
    "ai": ("chat", f"call whole-call orderly reset refuse {BODIES} wait silent leave drop"),
    "ai_responses": ("responses", f"orderly reset refuse {BODIES} wait silent leave drop"),
    "ai_anthropic": ("anthropic", "orderly reset refuse wait silent leave drop"),
    "ai_gemini": ("gemini", f"orderly close refuse {BODIES} wait silent leave drop"),
    "langchain": ("chat", f"orderly whole-call reset {BODIES} stall unprocessed drop"),
    "langchain_responses": (
        "responses",
        f"orderly whole-call reset {BODIES} stall unprocessed drop",
    ),
    "langchain_anthropic": ("anthropic", f"{CUTS} reset {BODIES} stall unprocessed drop"),
    "langchain_gemini": ("gemini", "orderly whole-call reset empty stall unprocessed leave drop"),
}


def plays():
    """The API, the fault, the script, the client, and its variables."""
    for script, clients in (("with_python.py", PYTHON), ("with_node.mjs", NODE)):
        for client, (api, faults) in clients.items():
            for fault in faults.split():
                if fault in ("leave", "drop"):
                    yield api, "slow", script, client, {"CANCEL": fault}
                else:
                    more = {"REQUESTS": "2"} if fault == "idle" else {}
                    yield api, fault, script, client, more


def play(one) -> str:
    api, fault, script, client, more = one
    python = os.environ.get("PYTHON", sys.executable)
    program = os.environ.get(APART.get(client, "PYTHON"), python)
    if script.endswith(".mjs"):
        program = os.environ.get("NODE", "node")
    options = ["--expose-gc"] if more.get("CANCEL") == "drop" and script.endswith(".mjs") else []
    command = [python, str(HERE / "raw_server.py"), api, fault, "--", program, *options]
    done = subprocess.run(  # noqa: S603 - its own server
        [*command, str(HERE / script), client],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    _, *lines = done.stdout.splitlines()
    return "\n".join([title(one), *lines]) + "\n"


def title(one) -> str:
    api, fault, script, client, more = one
    variables = "".join(f"{key}={value} " for key, value in more.items())
    return f"$ {variables}raw_server.py {api} {fault} -- {script} {client}"


def main(words: list[str]) -> None:
    chosen = [one for one in plays() if all(word in title(one).split() for word in words)]
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        played = pool.map(play, chosen)
        if words:
            for text in played:
                print(text, flush=True)
        else:
            (HERE / "log.txt").write_text("\n".join(played), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
