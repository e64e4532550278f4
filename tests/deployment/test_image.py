"""The image: what it is built from, what it runs, and that it runs where a Docker daemon is."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import tomllib
import zipfile

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from tests.deployment.command_lines import ROOT, parsed, program, run
from tests.deployment.dockerfile import argv, copy_context, instructions
from tests.timeouts import GIVE_UP

HELLO = "scenario: hello\nturns: [{reply: {text: Hello!}}]\n"


def test_the_command_is_one_of_mockllm():
    """The image serves the mounted folder on all addresses, with options that there are."""
    assert argv("ENTRYPOINT") == ["mockllm"]
    values = parsed(argv("CMD"))
    assert [str(path) for path in values["paths"]] == ["/scenarios"]
    assert (values["host"], values["port"]) == ("0.0.0.0", 8080)
    assert ("EXPOSE", "8080") in instructions()


def test_the_image_runs_without_privileges():
    """The user is a number other than that of root."""
    (user,) = (rest for keyword, rest in instructions() if keyword == "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_the_extras_exist():
    """pip only warns about an extra that a package does not have."""
    (extras,) = re.findall(r"\.whl\)\[([a-z,]+)\]", (ROOT / "Dockerfile").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])


def health_check(port: int) -> list[str]:
    """The command of the health check, for a server on another port."""
    text = next(rest for keyword, rest in instructions() if keyword == "HEALTHCHECK")
    assert text.count("8080") == 1
    return [sys.executable, *argv("HEALTHCHECK")[1:-1], argv("HEALTHCHECK")[-1].replace(
        "8080", str(port)
    )]  # fmt: skip


@pytest.mark.slow
def test_the_health_check_follows_the_server():
    """Its exit code is 0 while the server answers, and another one after that; a proxy that the
    environment names is not used."""
    proxied = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    with ServerThread(loads(HELLO), ServerOptions(host="0.0.0.0")) as thread:
        command = health_check(httpx.URL(thread.url).port or 0)
        assert argv("HEALTHCHECK")[0] == "python"
        assert subprocess.run(command, env=proxied, check=False).returncode == 0
    stopped = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert stopped.returncode == 1


@pytest.mark.slow
def test_the_context_is_enough_for_the_wheel(tmp_path):
    """The wheel that is built from what the Dockerfile copies has all files of mockllm."""
    context, wheels = tmp_path / "context", tmp_path / "wheels"
    context.mkdir()
    copy_context(context)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q",
        "-w", wheels, context)  # fmt: skip
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for folder in ("mockllm", "pytest_plugin/mockllm_pytest"):
        for file in (ROOT / folder).rglob("*.py"):
            assert str(file.relative_to(ROOT)).removeprefix("pytest_plugin/") in names
    assert {f"mockllm/shipped/{file.name}" for file in (ROOT / "scenarios").glob("*.yaml")} <= names


@pytest.mark.slow
def test_the_image_is_built_and_healthy():
    """The image is built; its container becomes healthy and answers, with a root that is
    read-only."""
    docker = program("docker")
    if subprocess.run([docker, "info"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no Docker daemon is here")
    base = next(rest.split()[0] for keyword, rest in instructions() if keyword == "FROM")
    if subprocess.run([docker, "pull", base], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{base} cannot be pulled")
    image = run(docker, "build", "--quiet", ROOT, timeout=10 * GIVE_UP).strip()
    container = run(docker, "run", "--detach", "--rm", "--read-only", "--tmpfs", "/tmp",
                    "--publish", "127.0.0.1::8080", image).strip()  # fmt: skip
    try:
        state = "{{.State.Health.Status}}"
        limit = time.monotonic() + GIVE_UP
        while (health := run(docker, "inspect", "-f", state, container).strip()) != "healthy":
            assert health == "starting", run(docker, "logs", container)
            assert time.monotonic() < limit
        address = run(docker, "port", container, "8080").split()[0]
        found = httpx.get(f"http://{address}/_mockllm/health", timeout=GIVE_UP, trust_env=False)
        assert found.json()["status"] == "ok"
        assert run(docker, "exec", container, "id", "-u").strip() == "10001"
    finally:
        run(docker, "rm", "--force", container)
