"""Plays what gateways get wrong, and prints it: python reproduce.py [GATEWAY...] > log.txt

It starts each gateway as mockllm/conformance/gateways/presets.yaml says, from where
`make gateways-ready` has installed it, and lets gateway_raw.py play the cases. It needs PyYAML, and
nothing of mockllm.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PRESETS = yaml.safe_load((ROOT / "mockllm/conformance/gateways/presets.yaml").read_text("utf-8"))

FINDINGS = yaml.safe_load((HERE / "findings.yaml").read_text("utf-8"))
"""Gateway to lists of down, up and cases; a case may have further options of gateway_raw.py."""

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def fill(text: str, values: dict[str, str]) -> str:
    """Variables may hold placeholders themselves, so they are filled in twice."""
    for _ in range(2):
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
    return text


@contextmanager
def running(name: str, down: str, up: str) -> Iterator[list[str]]:
    """Starts a gateway; gives the arguments for gateway_raw.py."""
    preset = PRESETS[name]
    pair: dict[str, Any] = next(
        pair for pair in preset["pairs"] if pair["up"] == up and down in pair["down"]
    )
    listen, port = free_port(), free_port()
    origin = f"http://127.0.0.1:{listen}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        values = {
            **pair.get("variables", {}),
            "dir": folder,
            "port": str(port),
            "model": pair["model"],
            "origin": origin,
            "upstream": origin + "/v1" * (up in ("chat", "responses")),
        }
        for path, text in preset.get("files", {}).items():
            Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, path).write_text(fill(text, values), "utf-8")
        programs = (
            ROOT / f".venv-gw-{name}/bin",
            ROOT / f"measurements/gateways/{name}/node_modules/.bin",
        )
        variables = preset.get("environment", {}).items()
        process = subprocess.Popen(  # noqa: S603 - what the preset says
            shlex.split(fill(preset["command"], values)),
            cwd=folder,
            env={
                "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
                "HOME": folder,
                **{key: fill(text, values) for key, text in variables},
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            wait(f"http://127.0.0.1:{port}{preset['ready']}", process)
            headers = [
                f"{key}:{fill(text, values)}" for key, text in pair.get("headers", {}).items()
            ]
            yield [
                *("--listen", str(listen), "--gateway", f"http://127.0.0.1:{port}"),
                *("--model", pair["model"]),
                *(part for header in headers for part in ("--header", header)),
                *(("--path", PATHS[down].removeprefix("/v1")) if pair.get("base") == "" else ()),
            ]
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=2)  # noqa: S310 - on this machine
        except OSError:
            if process.poll() is not None:
                sys.exit(f"the gateway ended with {process.returncode}")
            time.sleep(0.2)
        else:
            return
    sys.exit(f"{url} does not answer")


def play(name: str) -> Iterator[str]:
    """What the script prints, a case after the other."""
    for finding in FINDINGS[name]:
        down, up = finding["down"], finding["up"]
        with running(name, down, up) as arguments:
            for case in finding["cases"]:
                command = [sys.executable, str(HERE / "gateway_raw.py"), "--down", down, "--up", up]
                run = subprocess.run(  # noqa: S603 - the script beside this one
                    [*command, *arguments, "--case", *case.split()],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                yield f"{name} {PRESETS[name]['version']} {run.stdout.replace(str(ROOT), '')}"


def main(names: list[str]) -> None:
    for name in names or FINDINGS:
        for text in play(name):
            print(text, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
