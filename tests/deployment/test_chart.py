"""The Helm chart: rendered by Helm, allowed by Kubernetes, and the same as the kustomization."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
import yaml

import mockllm
from mockllm.scenario.part_model import AutoPart
from tests.deployment.command_lines import ROOT, parsed, program, run, schema_program
from tests.deployment.test_manifests import resources, validated
from tests.timeouts import GIVE_UP

CHART = ROOT / "packages" / "helm"
PAGE = (ROOT / "docs" / "deployment.md").read_text()
STORE = "redis://mockllm-valkey:6379/0"
SCENARIO = "scenario: weather\nturns:\n- reply: {text: Sunny.}\n"

Resources = dict[str, dict[str, Any]]


def helm(values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """The chart with some values; skips where Helm's engine is not installed."""
    python = schema_program("python")
    if subprocess.run([python, "-c", "import helm_python"], capture_output=True).returncode:
        pytest.skip("helm-python-sdk is not here; `make ready` installs it where it has a wheel")
    script = ROOT / "tests" / "deployment" / "schemas_env" / "render.py"
    command = [python, script, CHART, json.dumps(values)]
    return subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP, check=False)


def rendered(**values: Any) -> str:
    done = helm(values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def by_kind(text: str) -> Resources:
    return {one["kind"]: one for one in yaml.safe_load_all(text) if one}


def kustomized(name: str) -> Resources:
    """The same objects of a kustomization, as the chart has them: with the label of a release, and
    a ConfigMap without a hash in its name."""
    text = run(program("kubectl"), "kustomize", ROOT / "packages" / "kubernetes" / name)
    for kind, resource in resources(name):
        if kind == "ConfigMap":
            text = text.replace(resource, "mockllm-scenarios")
    return {
        one["kind"]: one
        for one in yaml.safe_load_all(text)
        if one["kind"] in ("Deployment", "Service", "ConfigMap")
        and "valkey" not in one["metadata"]["name"]
    }


def without_release(value: Any) -> Any:
    """The value without the label that tells releases apart."""
    if isinstance(value, list):
        return [without_release(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: one for key, one in value.items() if key != "app.kubernetes.io/instance"}
    return {key: without_release(one) for key, one in kept.items()}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "values"), [
    ("base", {}),
    ("replicas", {"replicas": None, "store": STORE}),
])  # fmt: skip
def test_the_chart_makes_the_objects_of_the_kustomization(name, values):
    """With its own values those of `base`, with a store those of `replicas`."""
    found = without_release(by_kind(rendered(**values)))
    if not values:
        assert found["Deployment"]["spec"].pop("replicas") == 1
    del found["ConfigMap"]["metadata"]["labels"]  # the generator of kustomize gives none
    expected = kustomized(name)
    assert set(found) == set(expected) == {"Deployment", "Service", "ConfigMap"}
    for kind, one in expected.items():
        assert found[kind] == one


@pytest.mark.slow
def test_the_values_have_their_effect(tmp_path):
    """Each value arrives in an object that Kubernetes allows."""
    values = {
        "image": {"repository": "registry.example/mockllm", "tag": "1", "pullPolicy": "Always"},
        "replicas": 3,
        "store": "redis://:$(PASSWORD)@valkey:6379/0",
        "scenarios": {"weather.yaml": SCENARIO},
        "args": ["--fallback", "auto"],
        "env": [{"name": "PASSWORD", "value": "a"}],
        "resources": {"limits": {"memory": "2Gi"}},
    }
    text = rendered(**values)
    (tmp_path / "rendered.yaml").write_text(text)
    found = by_kind(text)
    assert validated(tmp_path / "rendered.yaml") == len(found)
    pod = found["Deployment"]["spec"]["template"]
    (server,) = pod["spec"]["containers"]
    assert found["Deployment"]["spec"]["replicas"] == 3
    assert (server["image"], server["imagePullPolicy"]) == ("registry.example/mockllm:1", "Always")
    assert server["resources"]["limits"] == {"memory": "2Gi"}
    assert values["env"][0] in server["env"]
    options = parsed(server["args"])
    assert (options["state"], options["fallback"]) == (values["store"], AutoPart())
    assert found["ConfigMap"]["data"] == values["scenarios"]


@pytest.mark.slow
def test_pods_follow_the_scenarios():
    """Other scenarios make another pod; a ConfigMap that exists takes the place of the chart's."""
    first, second = (
        by_kind(rendered(scenarios={"a.yaml": text})) for text in (SCENARIO, SCENARIO + "\n")
    )
    assert first["Deployment"] != second["Deployment"]
    assert first["Service"] == second["Service"]
    given = by_kind(rendered(scenariosConfigMap="mine"))
    assert "ConfigMap" not in given
    volumes = given["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"configMap": {"name": "mine"}, "name": "scenarios"} in volumes


@pytest.mark.slow
@pytest.mark.parametrize(("values", "message"), [
    ({"replicas": 2}, "need a `store`"),
    ({"replicas": None}, "need a `store`"),
    ({"replicas": 0}, "replicas"),
    ({"repicas": 1}, "'repicas' not allowed"),
    ({"scenarios": {"a.yaml": "a"}, "scenariosConfigMap": "b"}, "exclude each other"),
])  # fmt: skip
def test_wrong_values_are_refused(values, message):
    """What would fail in the cluster, or have no effect, fails before it with the reason."""
    done = helm(values)
    assert done.returncode != 0
    assert message in done.stderr


def test_the_chart_agrees_with_the_rest():
    """Its version is that of mockllm, its scenario that of the kustomization; the page and the
    schema have each value."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == mockllm.__version__
    hello = ROOT / "packages" / "kubernetes" / "base" / "scenarios" / "hello.yaml"
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert (CHART / "hello.yaml").read_text() == hello.read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global"}
    for value in values:
        assert f"| `{value}` |" in PAGE
