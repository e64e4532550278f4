"""What `measurements/clients/*/client.toml` lists is whole and consistent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from measurements import entries as listed
from measurements.entries import CLIENTS, ROOT, chosen, entries
from mockllm.core.errors import UsageError
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

ENTRIES = entries()


def test_there_are_many_clients() -> None:
    """At least 30 ways of using a client, in several languages, of APIs that are played."""
    assert len(ENTRIES) >= 30
    assert {entry.api for entry in ENTRIES} <= set(PROTOCOLS)
    assert len({entry.language for entry in ENTRIES}) >= 2


@for_all("entry", ENTRIES, ids=lambda entry: entry.slug)
def test_an_entry_is_whole(entry) -> None:
    """Names are unique, and the command names an adapter that exists and its function."""
    assert [one.name for one in ENTRIES].count(entry.name) == 1
    files = [word for word in entry.command if word.startswith("measurements/")]
    assert entry.language not in ("python", "javascript") or len(files) == 2
    if entry.language == "python":
        assert all((ROOT / file).is_file() for file in files)
        assert f"def {entry.command[-1]}(" in (ROOT / files[-1]).read_text("utf-8")


def test_adapters_have_names_of_their_own() -> None:
    """An exception is attributed to an adapter by the name of its file."""
    names = [path.name for path in CLIENTS.glob("*/*_adapter.py")]
    assert len(set(names)) == len(names)


def test_an_environment_is_installed_by_make() -> None:
    """Each environment has the list that the Makefile installs."""
    for name in {entry.environment for entry in ENTRIES} - {""}:
        assert (CLIENTS / name / "requirements.txt").is_file(), name


def test_clients_are_chosen_by_name_package_or_file() -> None:
    """Without names all are chosen; a wrong name is an error that lists the right ones."""
    assert chosen([]) == ENTRIES
    (one,) = chosen(["anthropic messages.stream()"])
    assert chosen(["anthropic-messages-stream"]) == [one]
    assert one in chosen(["anthropic"])
    with pytest.raises(UsageError, match=r"no client 'nobody'.*anthropic"):
        chosen(["nobody"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = 1", "no .*client"),
        ("[[client]]\nname = 'x'\nsurprise = 1", "unknown key surprise"),
        ("[[client]]\nname = 'x'", "missing"),
        ("[[client", "cannot|no .*client"),
    ],
)
def test_a_damaged_file_is_named(text: str, problem: str, tmp_path: Path, monkeypatch) -> None:
    """A file that cannot be read is an error with its path."""
    folder = tmp_path / "conformance" / "clients" / "thing"
    folder.mkdir(parents=True)
    (folder / "client.toml").write_text(text, "utf-8")
    monkeypatch.setattr(listed, "ROOT", tmp_path)
    monkeypatch.setattr(listed, "CLIENTS", folder.parent)
    with pytest.raises(UsageError, match=rf"thing.client\.toml.*({problem})"):
        entries()


def test_a_missing_client_has_the_command_that_installs_it(tmp_path: Path, monkeypatch) -> None:
    """What is not installed names the command that installs it."""
    monkeypatch.setattr(listed, "ROOT", tmp_path)
    monkeypatch.setattr(listed, "CLIENTS", tmp_path)
    apart = [entry.missing for entry in ENTRIES if entry.environment]
    assert apart
    assert all("`make conformance-ready`" in reason for reason in apart)


def test_node_and_python_pins_are_those_of_the_files() -> None:
    """The packages of an environment have the versions that were measured."""
    for entry in ENTRIES:
        if entry.environment and entry.results.is_file():
            pins = (CLIENTS / entry.environment / "requirements.txt").read_text("utf-8")
            version = json.loads(entry.results.read_text("utf-8"))["client"]["version"]
            assert f"{entry.package}=={version.split()[0]}\n" in pins, entry.name
