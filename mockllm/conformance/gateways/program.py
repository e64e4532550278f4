"""The gateway's process: its command, its files, its environment, and when it is ready."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from mockllm.conformance.clients.child import end_process
from mockllm.conformance.gateways.cases import Pair
from mockllm.core.errors import ProbeError, UsageError
from mockllm.wire.protocols.environment import client_environment

_LAST_LINES = 15
_LOOK = 0.1
START_LIMIT = 120.0
"""Seconds that a gateway may take to start: some import for a minute."""


@dataclass(frozen=True, slots=True)
class GatewayCommand:
    """The start of a gateway. In command, files and environment `{upstream}`, `{origin}`,
    `{port}`, `{dir}` and `{model}` stand for the base URL of the upstream as a client of its API is
    given it, the same without its path, the port to listen on, a folder of its own, and the model
    that clients name.

    Args:
        words: of the command.
        files: that are written to the folder, by their paths in it.
        ready: the path that answers once it is ready; "" waits for the port alone.
        env: further variables of the environment.
        variables: further placeholders, by their names.
    """

    words: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    ready: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def running_gateway(
    command: GatewayCommand,
    pair: Pair,
    upstream: str,
    model: str,
    limit: float = START_LIMIT,
) -> Iterator[GatewayProgram]:
    """Runs a gateway while the `with` block lasts.

    Args:
        upstream: the base URL of the upstream.
        limit: seconds that it may take until it is ready.

    Raises:
        ProbeError: it cannot be started, ends, or is not ready in time; with the end of its output.
    """
    with tempfile.TemporaryDirectory(prefix="mockllm-gateway-") as folder:
        program = GatewayProgram(command, pair, upstream, model, Path(folder))
        process = program.start()
        try:
            asyncio.run(program.wait(process, limit))
            yield program
        finally:
            end_process(process, at_once=True)


class GatewayProgram:
    """A gateway with its folder, its port, and the values of its placeholders."""

    def __init__(
        self, command: GatewayCommand, pair: Pair, upstream: str, model: str, folder: Path
    ) -> None:
        self._command, self._pair, self._upstream = command, pair, upstream
        self._folder = folder
        self._port = _free_port()
        self._values = {
            # The first ones, as they may have placeholders themselves.
            **{f"{{{name}}}": value for name, value in command.variables.items()},
            "{upstream}": upstream,
            "{origin}": "{0.scheme}://{0.netloc}".format(urlsplit(upstream)),
            "{port}": str(self._port),
            "{dir}": str(folder),
            "{model}": model,
        }

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self._port}"

    def fill(self, text: str) -> str:
        """A text with the values of its placeholders."""
        for name, value in self._values.items():
            text = text.replace(name, value)
        return text

    def start(self) -> subprocess.Popen[bytes]:
        """Writes the files, and starts the process.

        Raises:
            ProbeError: it cannot be started.
        """
        for name, text in self._command.files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.fill(text), encoding="utf-8")
        words = list(map(self.fill, self._command.words))
        try:
            with self._log.open("wb") as log:
                return subprocess.Popen(  # noqa: S603  the user's own command
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self._environment(),
                    start_new_session=True,
                )
        except OSError as error:
            raise ProbeError(
                f"the gateway cannot be started: {shlex.join(words)}: {error.strerror or error}"
            ) from None

    def _environment(self) -> dict[str, str]:
        """All that a gateway gets: nothing of the user's own, above all no real key."""
        own = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._folder),
            "MOCKLLM_UPSTREAM_URL": self._upstream,
            "MOCKLLM_GATEWAY_PORT": str(self._port),
        }
        given = {name: self.fill(value) for name, value in self._command.env.items()}
        return {**own, **client_environment({self._pair.up: self._upstream}), **given}

    async def wait(self, process: subprocess.Popen[bytes], limit: float) -> None:
        """Waits until the gateway answers.

        Args:
            limit: seconds that it may take.

        Raises:
            ProbeError: it ends, or does not answer in time.
        """
        until = time.monotonic() + limit
        async with aiohttp.ClientSession() as http:
            while not await self._is_ready(http):
                code = process.poll()
                if code is not None:
                    raise ProbeError(
                        f"the gateway ended with exit code {code}{self._last_output()}"
                    )
                if time.monotonic() > until:
                    where = f"{self.url}{self._command.ready}"
                    raise ProbeError(
                        f"the gateway does not answer at {where} within {limit:g} s"
                        f"{self._last_output()}"
                    )
                await asyncio.sleep(_LOOK)

    async def _is_ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            if not self._command.ready:
                _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                writer.close()
                return True
            async with http.get(self.url + self._command.ready) as response:
                return response.status < 500
        except (OSError, aiohttp.ClientError):
            return False

    @property
    def _log(self) -> Path:
        """The file with its output."""
        return self._folder / "gateway.log"

    def _last_output(self) -> str:
        """The last lines that it printed, after a colon; "" for none."""
        lines = self._log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
        return ":\n" + "\n".join(f"  {line}" for line in lines) if lines else ""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def read_templates(paths: Sequence[Path]) -> dict[str, str]:
    """The texts of template files, by their names.

    Raises:
        UsageError: one cannot be read.
    """
    try:
        return {path.name: path.read_text(encoding="utf-8") for path in paths}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--template: {error}") from None
