"""The audit of cassettes: requests that changed, answers that break off, ages."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mockllm.play.tapes.captured import Captured
from mockllm.record.audit import (
    Audit,
    AuditedTest,
    audit_json,
    audit_lines,
    replay,
    stored_recording,
)
from mockllm.record.importers.reading import Entry, Unread
from mockllm.record.redaction.redact import Redactor
from tests.record.recording.exchanging import JSON, answer, asks, exchange, user

DAY = 86400.0
KEY = "sk-proj-Zt81mQ4xV7bN2cKp9RwLdE6uYh3s"


def changes(recorded: Captured, sent: Captured, *ignore: Any) -> tuple[str, ...]:
    found = replay("c.yaml", 1, recorded, sent, redactor=Redactor(), ignore=ignore)
    assert not found.unread
    return found.changes


def sending(body: bytes, **more: Any) -> Captured:
    return replace(exchange(body, []), **more)


def test_requests_of_models_and_of_other_routes_are_compared() -> None:
    """Also one of a body that its API refuses."""
    chat = sending(asks(user("hi"), seed=None))
    assert changes(chat, sending(asks(user("hi"), stream_options={"include_usage": True}))) == ()
    assert changes(chat, sending(asks(user("ho")))) == ('messages[0].content: "hi" → "ho"',)
    assert changes(chat, sending(b'{"model": 3}')) != ()
    route = sending(b'{"a": 1}', url="https://odd.test/x")
    assert changes(route, replace(route, request_body=b'{"a": 2}')) == ("body.a: 1 → 2",)
    assert changes(route, replace(route, request_body=b'{"a": 2}'), "$.a") == ()


def test_a_secret_is_not_in_the_report() -> None:
    """A value that a recording would hide is no difference, and is not shown beside one."""
    old, new = (
        sending(json.dumps({"text": text, "key": KEY}).encode(), url="https://odd.test/x")
        for text in ("a", f"b {KEY}")
    )
    (line,) = changes(old, new)
    assert line.startswith('body.text: "a" → "b ')
    assert KEY not in line
    assert changes(old, replace(old, request_body=old.request_body.replace(b"Zt81", b"Qw27"))) == ()


def test_a_request_that_cannot_be_compared_is_counted() -> None:
    unread = Unread("c.yaml", "its body cannot be read", "POST https://odd.test/x")
    found = replay("c.yaml", 1, answer([user("hi")], "a"), unread, redactor=Redactor(), ignore=())
    assert found.unread == "its body cannot be read"
    audit = Audit(0.0, (AuditedTest("t", "passed", "", ("c.yaml",), (found,), ()),), {})
    assert audit_json(audit)["summary"]["not_compared"] == 1
    assert "requests that could not be compared: 1" in list(audit_lines(audit))


WHOLE = answer([user("hi")], "Hello")


@pytest.mark.parametrize(
    ("entry", "flaw"),
    [
        (WHOLE, ""),
        (replace(WHOLE, chunks=WHOLE.chunks[:-2]), "its stream has no end"),
        (replace(WHOLE, chunks=WHOLE.chunks[:-2], status=500), ""),
        (exchange(asks(user("hi")), [b"{}"], headers=JSON), ""),
        (
            exchange(b"{}", [b'{"a": '], headers=JSON, url="https://odd.test/x"),
            "its JSON breaks off",
        ),
        (exchange(b"{}", [b""], headers=JSON, url="https://odd.test/x"), ""),
        (Unread("c.yaml#1", "it has no response"), "it cannot be read: it has no response"),
    ],
)
def test_answers_that_break_off(entry: Entry, flaw: str) -> None:
    """Streams by the end of their API, JSON by itself; errors of a service are whole."""
    assert stored_recording(entry).flaw == flaw


def test_a_test_that_does_not_pass_accuses_no_recording() -> None:
    """The rest of it may ask for what was not asked for; and ages are those of all recordings."""
    undated = exchange(b"{}", [b"{}"], headers=JSON, url="https://odd.test/x")
    stored = [stored_recording(replace(undated, at=days * DAY)) for days in (1, 3, 8, 0)]
    tests = tuple(
        AuditedTest(f"{name}.py::t", outcome, "", (f"{name}.yaml",), (), ())
        for name, outcome in (("a", "passed"), ("b", "failed"))
    )
    audit = Audit(11 * DAY, tests, {"a.yaml": tuple(stored), "b.yaml": tuple(stored)})
    assert [place for place, _ in audit.unrequested] == [f"a.yaml#{n}" for n in (1, 2, 3, 4)]
    assert audit.days == [10, 10, 8, 8, 3, 3]
    *_, age = audit_lines(audit)
    assert age.startswith("age: the oldest recording has 10 days, the median is 8 days")
    assert "2 of 8 have no date" in age


def test_an_audit_that_saw_nothing_says_so() -> None:
    (line,) = audit_lines(Audit(0.0, (), {}))
    assert "nothing was compared" in line
