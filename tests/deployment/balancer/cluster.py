"""Three servers behind nginx, with the settings of packages/nginx.conf, and Redis for their
state."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.deployment.balancer.processes import Process, free_ports
from tests.timeouts import GIVE_UP

CONFIGURATION = Path(__file__).parents[3] / "packages" / "nginx.conf"
UPSTREAM = "x-upstream"
"""The header with the address of the replica that answered; only here nginx adds it."""


class Cluster:
    """All processes; `url` is the address of nginx.

    Args:
        scenarios: a file that every replica serves.
    """

    def __init__(self, folder: Path, scenarios: Path, count: int = 3) -> None:
        self._folder, self._scenarios = folder, scenarios
        self._store_port, port, *self.ports = free_ports(2 + count)
        self.state = f"redis://127.0.0.1:{self._store_port}/0"
        self.url = f"http://127.0.0.1:{port}"
        self.http = httpx.Client(timeout=GIVE_UP, trust_env=False)
        self.store = self._start_store()
        self.replicas = [self._start_replica(one) for one in self.ports]
        self.balancer = self._start_balancer(port)
        for process in (self.store, *self.replicas, self.balancer):
            process.wait_until_ready()

    def replica_url(self, index: int) -> str:
        """The address of one replica, past nginx."""
        return f"http://127.0.0.1:{self.ports[index]}"

    def index_of(self, answer: httpx.Response) -> int:
        """Which replica an answer came from."""
        return self.ports.index(int(answer.headers[UPSTREAM].rpartition(":")[2]))

    def _start_store(self) -> Process:
        return Process(
            ["redis-server", "--port", str(self._store_port), "--bind", "127.0.0.1",
             "--save", "", "--appendonly", "yes", "--appendfsync", "always",
             "--dir", self._folder],
            self._folder,
            "Ready to accept connections",
        )  # fmt: skip

    def _start_replica(self, port: int) -> Process:
        return Process(
            [sys.executable, "-m", "mockllm", "serve", self._scenarios, "--port", str(port),
             "--state", self.state, "--grace", "1"],
            self._folder,
            "mockllm listening on ",
        )  # fmt: skip

    def _start_balancer(self, port: int) -> Process:
        configuration = self._folder / "nginx.conf"
        configuration.write_text(self._configuration(port))
        root = ["-g", "user root;"] if os.getuid() == 0 else []
        return Process(
            ["nginx", "-c", configuration, "-p", self._folder, "-e", "stderr", *root],
            self._folder,
            "start worker process",
        )

    def _configuration(self, port: int) -> str:
        """packages/nginx.conf with other addresses and folders; the replicas strictly in turn, and
        which one answered in a header."""
        changes: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
            (r"/tmp/", f"{self._folder}/"),
            (r"error_log stderr warn;", "error_log stderr notice;\ndaemon off;"),
            (r"listen 8080;", f"listen 127.0.0.1:{port};"),
            (r"\n *least_conn;", ""),
            (r"replica-(\d):8080", lambda found: f"127.0.0.1:{self.ports[int(found[1]) - 1]}"),
            (r"proxy_buffering off;", f"\\g<0>\nadd_header {UPSTREAM} $upstream_addr always;"),
        ]
        text = CONFIGURATION.read_text()
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text)
            assert count, pattern
        return text

    def kill_replica(self, index: int) -> None:
        """kill -9."""
        self.replicas[index].kill()

    def restart_replica(self, index: int) -> None:
        """Starts a replica again, at its address."""
        self.replicas[index] = self._start_replica(self.ports[index]).wait_until_ready()

    def kill_store(self) -> None:
        """kill -9."""
        self.store.kill()

    def restart_store(self) -> None:
        """Starts the store again, with what it has on the disk, and waits until every replica has
        found it."""
        self.store = self._start_store().wait_until_ready()
        for index in range(len(self.ports)):
            self.wait_for_status(index, 200)

    def wait_for_status(self, index: int, status: int) -> None:
        """Waits until `/_mockllm/ready` of a replica has a status."""
        url = f"{self.replica_url(index)}/_mockllm/ready"
        wait_until(lambda: self.http.get(url).status_code == status, f"{url} is not {status}")

    def make_session(self, scenarios: str, **keys: Any) -> dict[str, Any]:
        """A session with scenarios of its own, made through nginx."""
        made = self.http.post(
            f"{self.url}/_mockllm/sessions", json={"scenarios": scenarios, **keys}
        )
        assert made.status_code == 201, made.text
        answer: dict[str, Any] = made.json()
        return answer

    def read(self, index: int, path: str) -> Any:
        """The JSON of a control route of one replica."""
        answer = self.http.get(self.replica_url(index) + path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def close(self) -> None:
        """Ends all processes; each has to end well."""
        self.http.close()
        codes = [replica.stop() for replica in (self.balancer, *self.replicas, self.store)]
        problems = [replica.output for replica in self.replicas if "Traceback" in replica.output]
        assert not problems, problems[0][-4000:]
        assert codes == [0] * len(codes), codes


def wait_until(holds: Callable[[], bool], otherwise: str) -> None:
    """Waits until something holds that only sending requests can show."""
    limit = time.monotonic() + GIVE_UP
    while not holds():
        assert time.monotonic() < limit, otherwise
