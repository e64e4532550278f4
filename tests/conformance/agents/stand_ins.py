"""Programs that stand for coding agents, where a test needs none of the real ones."""

import sys

ASKS = f"""#!{sys.executable}
import json, os, sys, urllib.request
body = {{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": sys.argv[-1]}}]}}
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
    json.dumps(body).encode(),
    {{"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01"}},
)
with urllib.request.urlopen(request) as answer:
    text = json.load(answer)["content"][0]["text"]
settings = os.path.exists(os.environ["HOME"] + "/.claude/settings.json")
key = os.environ["ANTHROPIC_API_KEY"]
print(json.dumps([sys.argv[1:], text, settings, key, os.environ.get("CLAUDE_CONFIG_DIR")]))
"""
"""Asks Anthropic's API its last argument, and prints what it was given."""

WAITS = f"""#!{sys.executable}
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print("waits", flush=True)
signal.pause()
"""
"""Waits for ever, and ends with 5 when it is asked to."""


def write_stand_in(folder, script, name="claude"):
    """Writes a program into `bin` of a folder; the path of `bin`."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / name).write_text(script)
    (programs / name).chmod(0o755)
    return str(programs)
