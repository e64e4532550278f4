"""After secrets are taken out of a folder, each recording is still found by its own request."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.play.replay.loading import load
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured, load_tape
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.finding import not_found, recorded_before
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from tests.corpus import needs_corpus, suite_files

ADDRESS, OTHER = "alice@corp.io", "bob@corp.io"
BOUNDARY = "----boundary7MA4YWxk"


def exchange(
    path: str, request: Any, answer: Any, kind: str = "application/json"
) -> dict[str, Any]:
    """An interaction of a cassette; bodies that are no text are written as JSON."""
    body = request if isinstance(request, str) else json.dumps(request)
    return {
        "request": {
            "method": "POST",
            "uri": f"https://api.openai.com{path}",
            "headers": {"Content-Type": [kind], "Content-Length": [str(len(body))]},
            "body": body,
        },
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"Content-Type": ["application/json"]},
            "body": {"string": json.dumps(answer)},
        },
    }


def chat(user: str, answer: str) -> dict[str, Any]:
    """A question to a model, and its answer."""
    choice = {"index": 0, "message": {"role": "assistant", "content": answer}}
    return exchange(
        "/v1/chat/completions",
        {"model": "gpt-4o", "messages": [{"role": "user", "content": user}]},
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-4o",
            "choices": [choice | {"finish_reason": "stop"}],
        },
    )


def form(*fields: tuple[str, str]) -> str:
    """A multipart body."""
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    ]
    return "".join([*parts, f"--{BOUNDARY}--\r\n"])


MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"
UPLOAD = form(("purpose", "batch"), ("note", f"of {ADDRESS}"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose recordings have addresses in every kind of file."""
    long = f"{ADDRESS} " + "and so on " * 9_000
    interactions = [
        chat(f"who is {ADDRESS}?", "a colleague"),
        chat(f"who is {OTHER}?", f"call {ADDRESS}"),
        chat("tell all", long),
        exchange("/v1/embeddings", {"model": "e", "input": ADDRESS}, {"data": [ADDRESS] * 300}),
        exchange("/v1/files", UPLOAD, {"id": "file-1", "owner": ADDRESS}, MULTIPART),
    ]
    cassette = tmp_path / "cassette.json"
    cassette.write_text(json.dumps({"version": 1, "interactions": interactions}))
    rule = MatchRule(ignore=("uuid", "$.metadata"))
    results = import_files(
        [cassette], Folder(tmp_path / "out"), redactor=Redactor(KEPT), match=rule
    )
    assert not [str(result) for result in results if result.line.outcome == "skipped"]
    return tmp_path / "out"


KEPT = Rules(keep=("email",))


def lost(folder: Path) -> list[str]:
    """Why recordings of a folder are not found by the requests on their tapes."""
    scenarios = load([folder])
    player = Player(scenarios)
    reasons = []
    for scenario in scenarios:
        for index, turn in enumerate(scenario.turns):
            if turn.recorded is None:
                continue
            sent = recorded(folder, turn.recorded.file)
            session = Session("test")
            for before, number in recorded_before(player, sent, scenario.name, index):
                session.note_played(before.name, number)
            reason = not_found(player, sent, scenario.name, index, session)
            reasons += [f"{scenario.name} {index}: {reason}"] * bool(reason)
    return reasons


def recorded(folder: Path, file: str) -> Captured:
    return load_tape((folder / file).read_bytes(), file).exchange


def scrub(*arguments: object) -> str:
    result = CliRunner().invoke(main, ["scrub", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_recording_is_found_after_a_scrub(folder: Path) -> None:
    """No address is left in any file, and each request still gets its exact recording, though two
    requests are the same now."""
    assert lost(folder) == []
    assert ADDRESS in "".join(file.read_text() for file in folder.iterdir())
    scrub(folder)
    text = "".join(file.read_text() for file in folder.iterdir())
    assert ADDRESS not in text
    assert OTHER not in text
    assert lost(folder) == []
    assert scrub(folder, "--check").startswith("no secrets in ")


def test_a_multipart_body_stays_one(folder: Path) -> None:
    """The boundary is that of the header, and the length is right."""
    scrub(folder)
    tapes = [recorded(folder, file.name) for file in folder.glob("*.jsonl")]
    (upload,) = (tape for tape in tapes if tape.path.endswith("/files"))
    headers = dict(upload.request_headers)
    assert headers["content-type"] == MULTIPART
    assert headers["content-length"] == str(len(upload.request_body))
    assert upload.request_body.decode() == UPLOAD.replace(ADDRESS, "hidden-2@mail.example")


def test_a_scenario_alone_brings_its_files(folder: Path) -> None:
    """Where only the YAML is given, its tapes, texts and bodies are searched with it."""
    for file in folder.glob("*.yaml"):
        scrub(file)
    assert not [file for file in folder.iterdir() if ADDRESS in file.read_text()]
    assert lost(folder) == []


def test_the_name_of_a_file_stays(tmp_path: Path) -> None:
    """A scenario goes on to name the file that is there; the user learns that it has a secret."""
    body = f"{ADDRESS}.json"
    (tmp_path / body).write_text("{}")
    scenario = tmp_path / "a.yaml"
    scenario.write_text(f"scenario: a\nroute: GET /v1/x\nturns:\n  - answer: {{file: {body}}}\n")
    before = scenario.read_text()
    output = scrub(tmp_path)
    assert "a.yaml:4:20: e-mail address in the name of a file; rename that file" in output
    assert scenario.read_text() == before
    assert CliRunner().invoke(main, ["scrub", str(tmp_path), "--check"]).exit_code == 1


def test_scalars_beside_each_other_are_no_secret(tmp_path: Path) -> None:
    """The end of one value and the next name make no address."""
    file = tmp_path / "a.yaml"
    file.write_text("name: x/abc\nresponse:\n  '@type': type.googleapis.com\n")
    assert scrub(file) == "no secrets in 1 file\n"


def test_what_is_no_text_is_reported(tmp_path: Path) -> None:
    """A picture cannot be searched; a line reports that, and the address in it goes."""
    (tmp_path / "p.png").write_bytes(b"\x89PNG\0author: alice@corp.io\0\xff")
    text = "scenario: a\nroute: GET /v1/p\nturns:\n  - answer: {file: p.png}\n"
    (tmp_path / "a.yaml").write_text(text)
    assert "p.png: is no text; only the text in it is searched" in scrub(tmp_path)
    assert b"alice@corp.io" not in (tmp_path / "p.png").read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    """A scenario cannot make scrub rewrite a file elsewhere."""
    outside = tmp_path / "outside.txt"
    outside.write_text(ADDRESS)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.bin").symlink_to(outside)
    names = ("link.bin", "../outside.txt")
    for number, name in enumerate(names):
        text = f"scenario: a{number}\nroute: GET /{number}\nturns: [{{answer: {{file: {name}}}}}]\n"
        (inside / f"{number}.yaml").write_text(text)
    scrub(inside)
    assert outside.read_text() == ADDRESS


@pytest.mark.slow
@needs_corpus
def test_a_whole_suite_is_found_after_a_scrub(tmp_path: Path) -> None:
    """As many recordings are found as before, though words of many requests are secret now."""
    import_files(suite_files(), Folder(tmp_path / "out"))
    before = [one.partition(":")[0] for one in lost(tmp_path / "out")]
    assert scrub(tmp_path / "out", "--check").splitlines()[-1].startswith("no secrets")
    output = scrub(tmp_path / "out", "--redact", "(?:capital of )?(?:France|Mexico)|London")
    assert int(output.splitlines()[-1].split()[0]) > 100
    assert [one.partition(":")[0] for one in lost(tmp_path / "out")] == before
