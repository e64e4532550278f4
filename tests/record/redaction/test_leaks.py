"""Two hundred secrets in recordings of other tools, of which nothing is left in files or output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from tests.record.redaction import secrets

COUNT = 200
JSON = "application/json"
BOUNDARY = "----boundary7MA4YWxk"
MULTIPART = f"multipart/form-data; boundary={BOUNDARY}"


def interactions(index: int, sentence: str, secret: str) -> list[dict[str, Any]]:
    """Exchanges with a secret in every part, as a cassette has them."""
    line = secret.replace("\n", "")
    user = {"role": "user", "content": f"note {index}: {sentence}"}
    answer = {"role": "assistant", "content": f"noted {sentence}", "x_note": [sentence]}
    choice = {"index": 0, "message": answer, "finish_reason": "stop", "x_more": {"a": sentence}}
    chat = {"id": f"chatcmpl-{index}", "object": "chat.completion", "created": 1, "model": "m"}
    long = {**answer, "content": f"{sentence} " + "and so on " * 7_000}
    form = "".join(
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n{sentence}\r\n"
        for head in ('name="note"', f'name="file"; filename="{index}.txt"')
    )
    csv = f"name,note\r\n{index},{line}\r\n" * 80
    return [
        _one("/v1/chat/completions", {"model": "m", "messages": [user], "user": sentence},
             {**chat, "choices": [choice], "x_top": sentence}),
        _one("/v1/chat/completions", {"model": "m", "messages": [user], "seed": 1},
             {**chat, "choices": [{**choice, "message": long if index % 8 == 0 else answer}]}),
        _one("/v1/embeddings", {"model": "e", "input": [sentence, f"{index}"]},
             {"data": [sentence] * 80}),
        _one("/v1/files", f"{form}--{BOUNDARY}--\r\n", {"id": "f", "note": sentence}, MULTIPART),
        _one(f"/v1/lists/{index}?note={secrets.quote(line, safe='')}", {}, csv),
    ]  # fmt: skip


def _one(path: str, request: Any, answer: Any, kind: str = JSON) -> dict[str, Any]:
    body = request if isinstance(request, str) else json.dumps(request)
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return {
        "request": {
            "method": "POST",
            "uri": f"https://api.openai.com{path}",
            "headers": {"Content-Type": [kind]},
            "body": body,
        },
        "response": {
            "status": {"code": 200, "message": "OK"},
            "headers": {"Content-Type": [JSON if text[:1] == "{" else "text/csv"]},
            "body": {"string": text},
        },
    }


def har(every: list[dict[str, Any]]) -> str:
    """The same exchanges as an HTTP archive."""
    entries = [
        {
            "startedDateTime": "2025-01-01T00:00:00Z",
            "time": 1,
            "request": {
                "method": "POST",
                "url": one["request"]["uri"],
                "httpVersion": "HTTP/1.1",
                "headers": _pairs(one["request"]["headers"]),
                "postData": {"mimeType": JSON, "text": one["request"]["body"]},
            },
            "response": {
                "status": 200,
                "statusText": "OK",
                "httpVersion": "HTTP/1.1",
                "headers": _pairs(one["response"]["headers"]),
                "content": {"mimeType": JSON, "text": one["response"]["body"]["string"]},
            },
        }
        for one in every
    ]
    return json.dumps({"log": {"version": "1.2", "creator": {"name": "t"}, "entries": entries}})


def _pairs(headers: dict[str, list[str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, (value,) in headers.items()]


@pytest.mark.slow
def test_no_secret_is_left_by_an_import(tmp_path: Path) -> None:
    """Cassettes (also with a secret in their names) and an archive."""
    drawn: list[str] = []
    archived: list[dict[str, Any]] = []
    source = tmp_path / "source"
    source.mkdir()
    for index in range(COUNT):
        rng = secrets.generator(5000 + index)
        sentence, secret = secrets.secret(rng, index)
        drawn.append(secret)
        every = interactions(index, sentence, secret)
        if index % 2:
            archived += every
        else:
            # A name has nothing beside it that would show what else is a secret.
            shown = secret.startswith(tuple(secrets.PREFIXED)) and len(secret) < 100
            name = secret if shown else ""
            cassette = source / f"test_{index}_{name}.json"
            cassette.write_text(json.dumps({"version": 1, "interactions": every}))
    (source / "traffic.har").write_text(har(archived))
    out = tmp_path / "out"
    options = ("-o", str(out), "--json", "--redact", r"cust#\d+[a-z]?")
    result = CliRunner().invoke(main, ["import", *map(str, sorted(source.iterdir())), *options])
    assert len(list(out.glob("*.jsonl"))) >= COUNT * 4, result.output[-2000:]
    assert json.loads(result.stdout)
    texts = {"output": result.output}
    texts |= {file.name: f"{file.name}\n{file.read_text()}" for file in out.iterdir()}
    whole = "\n".join(texts.values())
    left = [
        (secret, part, [name for name, text in texts.items() if part in text][:3])
        for secret in drawn
        for part in sorted(secrets.parts(secret, 16))[::4]
        if part in whole
    ]
    assert not left, left[:5]
