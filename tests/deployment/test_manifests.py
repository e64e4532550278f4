"""The manifests in packages/kubernetes: rendered, valid, and fitting each other."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from mockllm import load
from tests.deployment.command_lines import ROOT, parsed, program, run, schema_program

FOLDER = ROOT / "packages" / "kubernetes"
VERSION = "1.34"

pytestmark = pytest.mark.slow


@cache
def rendered(name: str) -> str:
    """The resources that kubectl sends to a cluster."""
    return run(program("kubectl"), "kustomize", FOLDER / name)


def resources(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """By kind and name."""
    found = [one for one in yaml.safe_load_all(rendered(name)) if one]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def container(name: str, kind: str, resource: str) -> dict[str, Any]:
    (one,) = resources(name)[kind, resource]["spec"]["template"]["spec"]["containers"]
    return one


def validated(*files: Path) -> int:
    """How many resources of some files Kubernetes allows: all, without an unknown key."""
    validate = schema_program("kubernetes-validate")
    done = subprocess.run(
        [validate, "--strict", "--kubernetes-version", VERSION, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output.count(" passed for resource ")


@pytest.mark.parametrize("name", ["base", "replicas"])
def test_the_schemas(name, tmp_path):
    """Kubernetes allows every key and value that it gets."""
    file = tmp_path / "rendered.yaml"
    file.write_text(rendered(name))
    assert validated(file) == len(resources(name))


def test_the_schemas_of_the_files():
    """The same for the files, where no kubectl renders them."""
    folders = [file.parent for file in FOLDER.rglob("kustomization.yaml")]
    assert len(folders) == 2
    files = [
        folder / name
        for folder in folders
        for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        if name.endswith(".yaml")
    ]
    assert {file.parent.name for file in files} == {"base", "replicas"}
    assert validated(*files) >= len(files)


@pytest.mark.parametrize(("name", "state"), [
    ("base", ""),
    ("replicas", "redis://mockllm-valkey:6379/0"),
])  # fmt: skip
def test_the_server_is_started_rightly(name, state):
    """Its command line is one of mockllm; ports, folders and times fit the rest."""
    server = container(name, "Deployment", "mockllm")
    values = parsed(server["args"])
    assert (values["host"], values["state"]) == ("0.0.0.0", state)
    assert [port["containerPort"] for port in server["ports"]] == [values["port"]]
    mounts = {volumeMount["mountPath"]: volumeMount for volumeMount in server["volumeMounts"]}
    assert [str(path) for path in values["paths"]] == ["/scenarios"]
    assert mounts["/scenarios"]["readOnly"]
    pause = float(server["lifecycle"]["preStop"]["exec"]["command"][-1])
    pod = resources(name)["Deployment", "mockllm"]["spec"]["template"]["spec"]
    assert pause + values["grace"] < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("name", ["base", "replicas"])
def test_nothing_has_privileges(name):
    """All pods run as users, without capabilities, with a root that is read-only."""
    for (kind, _), one in resources(name).items():
        if kind not in ("Deployment", "StatefulSet"):
            continue
        pod = one["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for part in pod["containers"]:
            context = part["securityContext"]
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert {"livenessProbe", "readinessProbe", "startupProbe", "resources"} <= set(part)


def test_the_names_fit():
    """Selectors find the pods, the autoscaler its Deployment, and `--state` its Service."""
    found = resources("replicas")
    for (kind, name), one in found.items():
        if kind in ("Deployment", "StatefulSet"):
            labels = one["spec"]["template"]["metadata"]["labels"]
            assert one["spec"]["selector"]["matchLabels"] == labels
            assert found["Service", name]["spec"]["selector"] == labels
    server = found["Deployment", "mockllm"]["spec"]["template"]["metadata"]["labels"]
    budget = found["PodDisruptionBudget", "mockllm"]["spec"]["selector"]["matchLabels"]
    policy = found["NetworkPolicy", "mockllm-valkey"]["spec"]
    assert budget == server
    assert policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"] == server
    target = found["HorizontalPodAutoscaler", "mockllm"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) in found
    assert "replicas" not in found["Deployment", "mockllm"]["spec"]
    (port,) = found["Service", "mockllm-valkey"]["spec"]["ports"]
    assert parsed(container("replicas", "Deployment", "mockllm")["args"])["state"] == (
        f"redis://mockllm-valkey:{port['port']}/0"
    )


def test_the_scenarios_load(tmp_path):
    """The scenarios of the ConfigMap load, each once, from a volume as Kubernetes mounts it: links
    to a folder that is replaced as a whole."""
    found = resources("base")
    (config,) = (one for (kind, _), one in found.items() if kind == "ConfigMap")
    pod = found["Deployment", "mockllm"]["spec"]["template"]["spec"]
    assert {"configMap": {"name": config["metadata"]["name"]}, "name": "scenarios"} in pod[
        "volumes"
    ]
    data = tmp_path / "..2026_01_01"
    data.mkdir()
    (tmp_path / "..data").symlink_to(data.name)
    for name, text in config["data"].items():
        (data / name).write_text(text)
        (tmp_path / name).symlink_to(f"..data/{name}")
    assert len(load([tmp_path])) == len(config["data"])
