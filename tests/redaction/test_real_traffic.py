"""What is redacted in real traffic: almost nothing. Signatures, ids and base64 stay whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mockllm.redaction.redact import Redactor
from tests.redaction.secrets import found_in

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
# The corpus has no credentials. An address of the Samaritans stands in an answer.
KNOWN = {"jo@samaritans.org"}


@pytest.mark.slow
@pytest.mark.skipif(not (CORPUS / "streams").is_dir(), reason="the corpus is not there")
def test_nothing_else_is_redacted_in_streams() -> None:
    """Of all recorded streams and their requests."""
    redactor = Redactor()
    found = {
        (one.kind, secret)
        for file in sorted((CORPUS / "streams").glob("*/*/re*"))
        for one in found_in(redactor, file.read_text(encoding="utf-8"))
        for secret in one.secrets()
    }
    assert {secret for _, secret in found} <= KNOWN, found


def _bodies(file: Path) -> Iterator[str]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for exchange in yaml.load(file.read_text(encoding="utf-8"), Loader=loader)["interactions"]:
        for side in ("request", "response"):
            yield _text(exchange.get(side, {}))


def _text(side: dict[str, Any]) -> str:
    body = side.get("parsed_body")
    if body is not None:
        return json.dumps(body)
    body = side.get("body") or ""
    body = body.get("string", "") if isinstance(body, dict) else body
    return body.decode("utf-8", "surrogateescape") if isinstance(body, bytes) else body


@pytest.mark.skipif(not (CORPUS / "suite").is_dir(), reason="the corpus is not there")
@pytest.mark.slow
def test_nothing_else_is_redacted_in_cassettes() -> None:
    """Of the suite: requests and answers of chat, embeddings, images, and others."""
    redactor = Redactor()
    found = {
        (one.kind, secret)
        for file in sorted((CORPUS / "suite").rglob("*.yaml"))
        for body in _bodies(file)
        for one in found_in(redactor, body)
        for secret in one.secrets()
    }
    assert {secret for _, secret in found} <= KNOWN, found
