"""compose.yaml: by its schema, by docker compose, and by what its commands mean."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.deployment.command_lines import ROOT, parsed, program, run, schema_program

FILE = ROOT / "compose.yaml"


def services(**variables: str) -> dict[str, dict[str, Any]]:
    """The services with these variables of the environment, and else with the defaults."""
    text = re.sub(
        r"\$\{(\w+):-(.*?)\}", lambda use: variables.get(use[1], use[2]), FILE.read_text()
    )
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return found


def test_the_servers_are_started_rightly():
    """Each command line is one of mockllm; all replicas share one store, and the single server has
    none."""
    servers = {name: one for name, one in services().items() if one["image"] == "mockllm"}
    assert set(servers) == {"mockllm", "replica-1", "replica-2", "replica-3"}
    for name, server in servers.items():
        values = parsed(server["command"])
        assert (values["host"], values["port"]) == ("0.0.0.0", 8080)
        mounted = [volume.split(":")[1] for volume in server["volumes"]]
        assert [str(path) for path in values["paths"]] == mounted
        assert values["state"] == ("" if name == "mockllm" else "redis://valkey:6379/0")
        # Open streams end before Docker kills the process.
        assert values["grace"] < float(server["stop_grace_period"].removesuffix("s"))


def test_one_server_starts_without_a_profile():
    """`docker compose up` starts one server; all else belongs to the profile `replicas`."""
    usual = [name for name, one in services().items() if "profiles" not in one]
    assert usual == ["mockllm"]


def test_the_names_fit():
    """The services that others name are there: in nginx.conf, in --state, in depends_on."""
    names = set(services())
    upstreams = re.findall(r"^\s*server (\S+):8080", nginx_conf(), re.MULTILINE)
    assert set(upstreams) == {name for name in names if name.startswith("replica-")}
    for service in services().values():
        assert set(service.get("depends_on", {})) <= names
        if service["image"] == "mockllm":
            assert set(parsed(service["command"])["allowed_hosts"]) <= names | {"localhost"}


def nginx_conf() -> str:
    (volume,) = services()["balancer"]["volumes"]
    source, target, mode = volume.split(":")
    assert (target, mode) == ("/etc/nginx/nginx.conf", "ro")
    return (ROOT / source).read_text()


def test_the_ports_are_for_this_machine():
    """The journal shows what clients sent: nothing is published to other machines by itself."""
    assert published_ports() == ["127.0.0.1:8080:8080", "127.0.0.1:8081:8080"]


def published_ports(**variables: str) -> list[str]:
    found = services(**variables).values()
    return [port for service in found for port in service.get("ports", ())]


def test_a_server_for_colleagues():
    """Two variables say where every port is published, and under which name clients come."""
    given = {"MOCKLLM_BIND": "192.0.2.7", "MOCKLLM_HOST": "mock.example"}
    assert published_ports(**given) == ["192.0.2.7:8080:8080", "192.0.2.7:8081:8080"]
    servers = [one for one in services(**given).values() if one["image"] == "mockllm"]
    for server in servers:
        assert "mock.example" in parsed(server["command"])["allowed_hosts"]


@pytest.mark.slow
def test_the_schema():
    """The Compose Specification allows every key."""
    run(schema_program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", FILE)


@pytest.mark.slow
def test_docker_compose_reads_it():
    """`docker compose config` prints the services of the profile."""
    plugin = [program("docker"), "compose"]
    if subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode != 0:
        if shutil.which("docker-compose") is None:
            pytest.skip("docker has no compose here")
        plugin = ["docker-compose"]
    printed = run(*plugin, "--file", FILE, "--profile", "replicas", "config")
    read = yaml.safe_load(printed)["services"]
    assert set(read) == set(services())
    assert "--allow-host=localhost" in read["mockllm"]["command"]


@pytest.mark.slow
def test_nginx_reads_its_file(tmp_path):
    """Every setting is one of nginx. (tests/deployment/balancer runs it.)"""
    nginx = program("nginx")
    text = re.sub(r"replica-\d:", "127.0.0.1:", nginx_conf()).replace("/tmp/", f"{tmp_path}/")
    file = tmp_path / "nginx.conf"
    file.write_text(text)
    run(nginx, "-t", "-q", "-c", file, "-p", tmp_path, "-e", "stderr")
