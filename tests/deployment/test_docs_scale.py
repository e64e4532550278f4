"""docs/scale.md, deployment.md and load-tests.md: their commands are ones that there are, their
settings those of the files."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

import pytest
import yaml

from measurements.load_tools import TOOLS
from tests.deployment.command_lines import ROOT, parsed, program, run
from tests.docs.pages import text_of

PAGE = text_of("scale", "deployment", "load-tests")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """The commands of the page, also those of its table."""
    joined = (re.sub(r"\\\n *", "", text) for text in blocks("sh"))
    lines = [line for text in joined for line in text.splitlines()]
    lines += re.findall(r"^\| .* \| .*?`((?:mockllm|docker|kubectl) [^`]+)`", PAGE, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_every_command_of_mockllm_is_right():
    """Options and values exist, also in containers; so do the files."""
    found = 0
    for words in commands():
        match words:
            case ["mockllm", *arguments]:
                pass
            case ["docker", "run", *options]:
                arguments = options[options.index("mockllm") + 1 :]
            case _:
                continue
        found += 1
        here = [str(ROOT / word.lstrip("/")) if "scenarios" in word else word for word in arguments]
        for path in parsed(here).get("paths", ()) if here else ():
            assert path.exists()
    assert found >= 6


def test_every_other_command_names_what_is_there(tmp_path):
    """Files, profiles and services of the commands for Docker, Kubernetes, Locust and k6; options
    of the load-test tools that the heavy tests run."""
    tools = {tool.name: tool.command("http://h", 1, 1, tmp_path) for tool in TOOLS}
    seen = set()
    for words in commands():
        match words:
            case [bind, host, "docker", "compose", "up"] if "=" in bind and "=" in host:
                used = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text()))
                assert {word.partition("=")[0] for word in (bind, host)} == used
            case ["docker", "compose", "--profile", profile, "up", "--wait", service]:
                assert profile in COMPOSE[service]["profiles"]
            case ["kubectl", "apply", "-k", folder]:
                assert (ROOT / folder / "kustomization.yaml").exists()
            case ["helm", "install" | "upgrade", "mockllm", folder, *options]:
                values = yaml.safe_load((ROOT / folder / "values.yaml").read_text())
                settings = [word for word in options if not word.startswith("--")]
                assert {re.split(r"[.=]", setting)[0] for setting in settings} <= set(values)
            case ["locust", "-f", file, *_] | ["k6", *_, file]:
                assert (ROOT / file).exists()
            case ["aiperf" | "guidellm", *options]:
                assert {word for word in options if word[0] == "-"} <= set(tools[words[0]])
            case ["yes", *_]:
                pass
            case ["eval", command]:
                parsed(shlex.split(command.removeprefix("$(").removesuffix(")"))[1:])
            case ["docker", "compose", "up"] | ["docker", "build", *_]:
                pass
            case ["docker", "run", *_] | ["mockllm", *_] | ["pip", *_] | ["curl", *_]:
                pass
            case _:
                pytest.fail(f"this command is not checked: {words}")
        seen.add(words[0])
    assert seen >= {"mockllm", "docker", "kubectl", "helm", "pip", "curl"}
    assert seen >= {"locust", "k6", "aiperf", "guidellm"}
    for service in re.findall(r"docker compose restart (\w+)", PAGE):
        assert service in COMPOSE


def test_the_settings_of_nginx_are_those_of_the_file():
    """Each line of the block, and each setting of the table, stands in packages/nginx.conf."""
    file = (ROOT / "packages" / "nginx.conf").read_text()
    (block,) = blocks("nginx")
    for line in block.splitlines():
        assert line in file
    for setting in ("keepalive 256;", "keepalive_timeout 60s;", "max_fails=0", "least_conn;"):
        assert setting in file
        assert re.match(r"[a-z_]+", setting)[0] in PAGE


def test_the_numbers_are_those_of_the_files():
    """Replicas, times and shares on the page are those of the manifests."""
    folder = ROOT / "packages" / "kubernetes"
    spec = yaml.safe_load((folder / "replicas" / "autoscaler.yaml").read_text())["spec"]
    assert f"from {spec['minReplicas']} to {spec['maxReplicas']}" in PAGE
    share = spec["metrics"][0]["resource"]["target"]["averageUtilization"]
    assert f"adds pods at {share} %" in PAGE
    pod = yaml.safe_load((folder / "base" / "deployment.yaml").read_text())["spec"]["template"]
    (server,) = pod["spec"]["containers"]
    pause = server["lifecycle"]["preStop"]["exec"]["command"][-1]
    grace = parsed(server["args"])["grace"]
    assert f"has {pause} s until no new connection comes, then {grace:g} s for" in PAGE


def test_the_extrapolation_follows_its_formula():
    """The replicas of each row are those of the formula on the page."""
    (streams,) = re.findall(r"^For ([\d,]+) streams", PAGE, re.MULTILINE)
    rows = re.findall(r"^\| below .* \| ([\d,]+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert rows
    for held, replicas in rows:
        needed = number(streams) / number(held) / 0.7
        assert int(replicas) == math.ceil(needed)


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.slow
def test_the_overlay_of_the_page_renders(tmp_path: Path) -> None:
    """It replaces the image and the scenarios."""
    kubectl = program("kubectl")
    (overlay,) = blocks("yaml")
    name, text = overlay.split("\n", 1)
    (tmp_path / name.removeprefix("# ")).write_text(text)
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "weather.yaml").write_text("scenario: weather\n")
    for file in (ROOT / "packages").rglob("*"):
        if file.is_file():
            copy = tmp_path / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(file.read_text())
    rendered = run(kubectl, "kustomize", tmp_path)
    assert "image: registry.example/mockllm:1" in rendered
    assert "scenario: weather" in rendered
    assert "Hello from the cluster!" not in rendered
