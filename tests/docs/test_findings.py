"""docs/findings.md is true: every script prints what the page says. None of them uses mockllm."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cases import for_all
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "findings"
PAGE = (ROOT / "docs" / "findings.md").read_text("utf-8")
_PRINTED = r"\[`findings/(\S+)`\]\(findings/\1\) prints:\n\n```text\n(.*?)```"
PRINTED = dict(re.findall(_PRINTED, PAGE, re.DOTALL))
"""Script to what it prints, as the page says."""

SCRIPTS = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".mjs"))

BYTES = (".sse", ".hex")
"""The suffixes of files with what a server sends: text, or frames of an AWS event stream."""

NODE_MODULES = ROOT / "measurements" / "clients" / "node_modules"

PACKAGES = {
    "ag_ui_process_ends.mjs": "@ag-ui/client",
    "anthropic_bedrock_cut_frame.py": "anthropic",
    "anthropic_cut_call.mjs": "@anthropic-ai/sdk",
    "anthropic_cut_call.py": "anthropic",
    "boto3_cut_frame.py": "boto3",
    "langchain_cut_arguments.mjs": "@langchain/openai",
    "langchain_cut_arguments.py": "langchain-openai",
    "langchain_js_anthropic_output_tokens.mjs": "@langchain/anthropic",
    "langchain_js_google_process_ends.mjs": "@langchain/google-genai",
    "llama_index_two_calls.py": "llama-index-llms-openai",
    "openai_agents_unfinished_call.py": "openai-agents",
    "openai_node_in_progress.mjs": "openai",
    "openai_python_calls_of_index_0.py": "openai",
    "openai_python_role.py": "openai",
    "pydantic_ai_cut_frame.py": "pydantic-ai-slim",
    "pydantic_ai_unfinished_call.py": "pydantic-ai-slim",
    "smolagents_content_filter.py": "smolagents",
}

APART = {
    "llama-index-llms-openai": ROOT / ".venv-frameworks",
    "smolagents": ROOT / ".venv-frameworks",
}
"""The packages that are installed in environments of their own."""


def test_every_script_is_on_the_page() -> None:
    """The page, the folder and this test name the same scripts."""
    assert sorted(PRINTED) == SCRIPTS == sorted(PACKAGES)


@for_all("name", SCRIPTS)
def test_script_is_small_and_alone(name: str) -> None:
    """A script has at most 25 lines of code, imports nothing of mockllm, and its bytes are on the
    page."""
    text = (FOLDER / name).read_text("utf-8")
    assert len([line for line in text.splitlines() if line.strip()]) <= 25
    assert "mockllm" not in text
    (data,) = (path for path in FOLDER.glob(f"{Path(name).stem}.*") if path.suffix in BYTES)
    assert data.read_text("utf-8").rstrip() in PAGE


@pytest.mark.heavy
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    """The installed version still does what the page says; else the page has to be changed."""
    package = PACKAGES[name]
    version, command = _installed(name, package)
    for path in FOLDER.glob(f"{Path(name).stem}.*"):
        shutil.copy(path, tmp_path)
    if name.endswith(".mjs"):
        (tmp_path / "node_modules").symlink_to(NODE_MODULES, target_is_directory=True)
    run = subprocess.run(
        [*command, name],
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=GIVE_UP,
        check=False,
    )
    assert run.stdout == PRINTED[name], (
        f"with {package} {version}, {name} prints this now; change docs/findings.md.\n{run.stderr}"
    )


def _installed(name: str, package: str) -> tuple[str, list[str]]:
    """The version of a package and the interpreter that has it; skips where it is missing."""
    if name.endswith(".mjs"):
        node, manifest = shutil.which("node"), NODE_MODULES / package / "package.json"
        if node is None or not manifest.is_file():
            pytest.skip(f"{package} is not here: `make ready` installs it, if npm is")
        return json.loads(manifest.read_text("utf-8"))["version"], [node]
    if package not in APART:
        return importlib.metadata.version(package), [sys.executable]
    python = APART[package] / "bin" / "python"
    folders = [str(path) for path in APART[package].glob("lib/python3*/site-packages")]
    found = list(importlib.metadata.distributions(name=package, path=folders))
    if not python.exists() or not found:
        pytest.skip(f"{package} is not in {APART[package].name}, its environment")
    return found[0].version, [str(python)]


def _environment() -> dict[str, str]:
    """The variables that programs need; others may change the behaviour of clients."""
    kept = ("PATH", "HOME", "TMPDIR", "SYSTEMROOT")
    return {name: os.environ[name] for name in kept if name in os.environ}
