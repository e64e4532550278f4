"""docs/findings/gateways plays what its README says, with the versions that the presets name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import for_all

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "findings" / "gateways"
SCRIPT = FOLDER / "gateway_raw.py"
PRESETS: dict[str, Any] = yaml.safe_load(
    (ROOT / "mockllm/conformance/gateways/presets.yaml").read_text("utf-8")
)
FINDINGS = yaml.safe_load((FOLDER / "findings.yaml").read_text("utf-8"))
APIS = ("chat", "responses", "anthropic", "gemini")


def test_every_preset_is_pinned_and_what_is_pinned_has_a_preset() -> None:
    """`make gateways-ready` installs exactly the versions that the presets name."""
    folders = {
        path.name for path in (ROOT / "measurements" / "gateways").iterdir() if path.is_dir()
    }
    assert folders == set(PRESETS)
    for name, preset in PRESETS.items():
        assert preset["version"] in preset["install"]["packages"][0]
        assert set(preset["install"]["packages"]) <= _pins(name, preset["install"]["kind"]), name


def _pins(name: str, kind: str) -> set[str]:
    folder = ROOT / "measurements" / "gateways" / name
    if kind == "pip":
        return set((folder / "requirements.txt").read_text("utf-8").splitlines())
    manifest = json.loads((folder / "package.json").read_text("utf-8"))
    return {f"{package}@{version}" for package, version in manifest["dependencies"].items()}


def test_placeholders_of_presets_are_known() -> None:
    """A template asks for nothing that neither the loader nor the pair has."""
    for name, preset in PRESETS.items():
        texts = [preset["command"], *preset.get("files", {}).values()]
        texts += preset.get("environment", {}).values()
        asked = {word for text in texts for word in re.findall(r"\{([a-z_]+)\}", text)}
        for pair in preset["pairs"]:
            given = {"dir", "port", "model", "upstream", "origin", *pair.get("variables", {})}
            assert asked <= given, (name, asked - given)


def test_findings_are_of_pairs_and_cases_that_there_are() -> None:
    """Each play has a preset, and each case is in the README."""
    readme = (FOLDER / "README.md").read_text("utf-8")
    for name, findings in FINDINGS.items():
        for finding in findings:
            pairs = PRESETS[name]["pairs"]
            assert any(finding["down"] in p["down"] and finding["up"] == p["up"] for p in pairs), (
                name
            )
            assert all(f"`{case.split()[0]}`" in readme for case in finding["cases"])


def test_what_is_replayed_is_of_pairs_that_there_are_and_was_shown() -> None:
    """The log has each play, and each shows its finding."""
    entries = json.loads((FOLDER / "replayed.json").read_text("utf-8"))
    log = (FOLDER / "replayed.txt").read_text("utf-8")
    for entry in entries:
        pairs = PRESETS[entry["gateway"]]["pairs"]
        assert any(entry["down"] in pair["down"] and entry["up"] == pair["up"] for pair in pairs)
        pair = f"{entry['down']}-{entry['up']}"
        title = f"=== {entry['gateway']} over {pair}: {entry['case']}\n{entry['says']}: shown"
        assert title in log
    assert log.count("\n=== ") + 1 == len(entries)


def test_scripts_use_nothing_of_mockllm() -> None:
    """An accusation stands without the tool that found it."""
    for script in FOLDER.glob("*.py"):
        assert not re.search(r"^\s*(import|from) mockllm", script.read_text("utf-8"), re.MULTILINE)


@pytest.mark.slow
@for_all("api", APIS)
def test_without_a_gateway_nothing_is_lost(api: str) -> None:
    """The control run: a client that asks the server itself gets what it sent, byte by byte too."""
    for options in (["two-calls"], ["u2028", "--writes", "bytes"]):
        printed = _play(api, *options)
        _, sent, got = re.split("^upstream sent:|^client got:", printed, flags=re.MULTILINE)
        assert _events(sent) == _events(got.replace("<U+2028>", "\u2028"))
        assert printed.endswith("requests upstream: 1")
    assert "client got: 429 {'content-type': 'application/json', 'retry-after': '7'}" in _play(
        api, "status-429", "--plain"
    )
    assert "IncompleteRead" in _play(api, "cut-call")
    assert "the gateway has left" in _play(api, "leave")


def _play(api: str, *options: str) -> str:
    command = [sys.executable, str(SCRIPT), "--up", api, "--down", api, "--case", *options]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.rstrip()


def _events(text: str) -> list[str]:
    return re.findall(r"^ *data: (.*)", text, re.MULTILINE)
