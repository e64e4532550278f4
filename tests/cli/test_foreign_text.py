"""Text of others reaches no terminal as it is: it could move the cursor, set a title, or turn a
line around."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from mockllm.cli import main
from mockllm.core.text import printable_lines
from tests.cases import for_all
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]

CONTROLS = "\x1b\x07\x08\x0b\r\x7f\x9b\x85\u061c\u200e\u202a\u202e\u2066\u2069"
"""Controls of a terminal (C0 and C1), and marks for the direction of text."""

EVIL = "x \x1b[2J\x1b]0;pwn\x07 \u202e\u2066 \x9b31m y"

PRINTERS = {
    "mockllm/cli/terminal/output.py": "the one function",
    "mockllm/cli/demo.py": "draws what the shipped scenario streams",
    "mockllm/cli/docs.py": "pages of this project, by a pager",
    "mockllm/cli/drift.py": "asks a question of its own",
    "mockllm/cli/serving/server_log.py": "writes lines that are printable and never block",
    "mockllm/cli/serving/stop_signals.py": "writes a word of its own in a handler of signals",
    "mockllm/serve/server/recording/recorder.py": "a line that is printable, where there is no log",
}
"""Modules that write to a terminal, and what is written."""


def _is_printing(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="print")):
            return True
        case ast.Attribute(value=ast.Name(id="click"), attr=name):
            return name in ("echo", "secho", "echo_via_pager", "confirm", "prompt", "pause")
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr=stream), attr=name):
            return stream in ("stdout", "stderr") and name in ("write", "writelines", "buffer")
        case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="write"), args=[first, *_]):
            return isinstance(first, ast.Constant)
        case ast.Call(func=ast.Name(id="Screen")):
            return True
        case ast.Attribute(value=ast.Name(id="self"), attr="_descriptor"):
            return True
    return False


def test_one_function_prints() -> None:
    """Everything else that writes to a terminal is listed, with what it writes."""
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "mockllm").rglob("*.py")
        if any(map(_is_printing, ast.walk(ast.parse(path.read_text()))))
    }
    assert found == PRINTERS.keys()


def _is_reporting(node: ast.AST) -> bool:
    """Whether the plugin prints what is not known to be printable."""
    match node:
        case ast.Attribute(value=ast.Name(id="pytest"), attr="fail"):
            return True
        case ast.Attribute(attr="add_report_section"):
            return True
        case ast.Call(func=ast.Attribute(attr="write_line"), args=[first, *_]):
            is_own = isinstance(first, ast.Constant)
            return not (is_own or ast.unparse(first).startswith("printable("))
    return False


def test_the_plugin_prints_by_one_module() -> None:
    """Failures, sections of reports and lines of the summary; to catch a failure is no printing."""
    plugin = ROOT / "pytest_plugin" / "mockllm_pytest"
    found = {
        f"{path.name}: {ast.unparse(node)}"
        for path in plugin.glob("*.py")
        if path.name != "printing.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if _is_reporting(node)
    }
    assert found == {"plugin.py: pytest.fail"}  # `pytest.fail.Exception`, which is caught


@for_all("control", list(CONTROLS), ids=lambda control: f"{ord(control):04x}")
def test_a_control_is_escaped_in_lines(control: str) -> None:
    """As JSON escapes it; ends of lines and tabs stay."""
    assert printable_lines(f"a{control}b\n\tc\r\n") == f"a\\u{ord(control):04x}b\n\tc\r\n"
    assert json.loads(printable_lines(json.dumps(control, ensure_ascii=False))) == control


def _controls(text: str) -> set[str]:
    return set(text) & set(CONTROLS)


@for_all("name", main.list_commands(click.Context(main)))
@for_all("word", [EVIL, f"--{EVIL}", f"--scenarios={EVIL}", f"-o{EVIL}"], ids=repr)
def test_a_command_quotes_its_words_escaped(name, word, mockllm, tmp_path, monkeypatch) -> None:
    """What is wrong with an argument or an option is said with the word in it."""
    monkeypatch.chdir(tmp_path)
    result = mockllm(name, word)
    assert not _controls(result.output), result.output


@pytest.fixture
def folder(tmp_path):
    """A folder whose name, scenario and texts have controls."""
    spec = {
        "scenario": "evil",
        "description": EVIL,
        "tools": [{"name": "f", "description": EVIL}],
        "match": {"user": EVIL},
        "turns": [{"reply": {"text": f"{EVIL} jane.doe@example.com"}}],
    }
    made = tmp_path / f"a{EVIL}"
    made.mkdir()
    (made / f"{EVIL}.yaml").write_text(yaml.safe_dump(spec))
    return made


CONTENTS = {
    "list": ["{}"],
    "list as JSON": ["list", "{}", "--json"],
    "validate": ["validate", "{}"],
    "validate as JSON": ["validate", "{}", "--json"],
    "scrub": ["scrub", "{}", "--check"],
    "show no such scenario": ["show", f"b{EVIL}", "--scenarios", "{}"],
    "export no such scenario": ["export", f"b{EVIL}", "--to", "vcr", "--scenarios", "{}"],
    "drift": ["drift", "{}"],
    "check": ["check", "--api", "chat", "--scenarios", "{}", "--only", EVIL, "--", EVIL],
    "run": ["run", "--scenarios", "{}", "--", sys.executable, "-c", "import sys"],
    "import": ["import", "{}", "-o", "out"],
    "report": ["report", "{}"],
    "convert-tests": ["convert-tests", "{}"],
}


@for_all("arguments", CONTENTS.values(), ids=list(CONTENTS))
def test_a_command_prints_contents_escaped(arguments, folder, mockllm, tmp_path, monkeypatch):
    """Names of files, and what stands in them."""
    monkeypatch.chdir(tmp_path)
    words = [word.replace("{}", str(folder)) for word in arguments]
    result = mockllm(*(words if len(arguments) > 1 else ["list", *words]))
    assert not _controls(result.output), result.output


def test_json_has_the_texts_as_they_are(folder, mockllm) -> None:
    """The escapes are those of JSON, so nothing is lost."""
    (listed,) = json.loads(mockllm("list", folder, "--json").output)
    assert listed["description"] == EVIL


REQUEST = """
import json, os, urllib.request
body = {"model": "g", "messages": [{"role": "user", "content": os.environ["EVIL"]}]}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
headers = {"content-type": "application/json"}
try:
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers))
except OSError:
    pass
"""


def test_a_verdict_quotes_requests_escaped(folder, tmp_path) -> None:
    """Of `mockllm run`, on a request that nothing answers."""
    words = ["--scenarios", str(folder), "--", sys.executable, "-c", REQUEST]
    done = subprocess.run(
        [sys.executable, "-m", "mockllm", "run", *words],
        env={**os.environ, "EVIL": f"nobody {EVIL[:-1]}"}, cwd=tmp_path,
        capture_output=True, text=True, encoding="utf-8", timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "nobody" in done.stderr
    assert not _controls(done.stderr), done.stderr


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal: that of a person, and that of a program."""
    pty = pytest.importorskip("pty")
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_bytes_are_escaped_on_a_terminal_alone(folder, terminal) -> None:
    """A program gets them exactly."""
    person, program = terminal
    words = [sys.executable, "-m", "mockllm", "show", "evil", "--scenarios", str(folder)]
    done = subprocess.run(words, capture_output=True, timeout=GIVE_UP, check=True)
    assert "\u202e" in done.stdout.decode()
    subprocess.run(words, stdout=program, stderr=subprocess.DEVNULL, timeout=GIVE_UP, check=True)
    shown = os.read(person, 1 << 16).decode().replace("\r\n", "\n")
    assert "\\u202e" in shown
    assert not _controls(shown), shown
