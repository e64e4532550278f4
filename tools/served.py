"""A server of its own process, as `mockllm serve` starts it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LISTENS = re.compile(r"mockllm listening on (http://\S+)")


@contextmanager
def served(*arguments: str, port: int = 0, folder: Path | None = None) -> Iterator[str]:
    """The URL of a server with these arguments of `mockllm serve`, which ends with the block.

    Args:
        folder: where it runs; default: here.

    Raises:
        RuntimeError: it does not listen; the message has what it printed.
    """
    command = [sys.executable, "-m", "mockllm", "serve", *arguments, "--port", str(port), "--quiet"]
    environment = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
    )
    try:
        assert process.stdout is not None
        printed = ""
        for line in process.stdout:
            printed += line
            if found := _LISTENS.match(line):
                break
        else:
            raise RuntimeError(f"the server does not start: {printed}")
        yield found[1]
    finally:
        process.terminate()
        process.communicate()
