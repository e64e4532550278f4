"""The lines of the log."""

import os
from contextlib import contextmanager

from mockllm.cli.serving.server_log import LineOutput, LogOptions, ServerLog
from mockllm.serve.server.app import MockServer
from tests.entries import journal_entry

ADVICE = "Change its match, add a scenario, or start the server with --fallback auto."


@contextmanager
def log(options=LogOptions()):  # noqa: B008 - it is frozen
    """A report, and a function that returns what it has written."""
    reading, writing = os.pipe()
    try:
        yield ServerLog(options, LineOutput(writing)), lambda: os.read(reading, 65536).decode()
    finally:
        os.close(reading)
        os.close(writing)


def refused(problem, **values):
    return journal_entry("POST", "/v1/x", {}, b"", status=404, problems=(problem,), **values)


def test_a_refusal_keeps_its_advice():
    """Of a message that is too long, the middle is left out: what to do is at its end."""
    with log() as (report, written):
        report.exchange(refused("No scenario answers. " + "nearest: one; " * 20 + ADVICE))
        assert written().endswith(f"{ADVICE}\n")
        report.exchange(refused("No scenario answers. " + "nearest: one; " * 200 + ADVICE))
        line = written()
    assert " … " in line
    assert line.endswith(f"{ADVICE}\n")
    assert "No scenario answers." in line
    assert len(line) < 800


def test_a_terminal_sees_only_text():
    """Controls of the terminal, and marks that turn text around, are escaped, in JSON, too."""
    evil = "a\x1b[31m\u202eb\x9b"
    for form in ("text", "json"):
        with log(LogOptions(form)) as (report, written):
            report.exchange(refused(f"got {evil}"))
            report.notice(evil)
            lines = written()
        assert not set(lines) & set("\x1b\u202e\x9b")
        assert lines.count("\\u202e") >= 2


def test_a_log_has_no_secret_of_a_prompt():
    """They are replaced as in a recording; without quotes, nothing of the prompt is there."""
    problem = "got 'my key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD'"
    for form in ("text", "json"):
        with log(LogOptions(form)) as (report, written):
            report.exchange(refused(problem))
            line = written()
        assert "my key is" in line
        assert "abcdefghij" not in line
        with log(LogOptions(form, quotes=False)) as (report, written):
            report.exchange(refused(problem))
            line = written()
        assert "my key is" not in line
        assert "log-quotes = false" in line


def test_who_ended_a_stream():
    """The log says whether the client left, or the server stopped."""
    with log() as (report, written):
        one = journal_entry(
            "POST", "/v1/x", {}, b"", bytes_sent=12, outcome="played", scenario="one"
        )
        one.sent.leave()
        report.exchange(one)
        assert "the client left after 12 bytes" in written()
        one.sent.finish(0.0, stopping=True)
        report.exchange(one)
        assert "the server stopped after 12 bytes" in written()


def test_further_addresses_are_printed():
    """A server that listens on all addresses names those for other machines."""

    class Server(MockServer):
        elsewhere = ("http://192.0.2.7:8080",)  # it depends on the machine

    with log() as (report, written):
        report.listening("http://127.0.0.1:8080")
        report.serving(Server(()))
        lines = written().splitlines()
    assert lines[:2] == [
        "mockllm listening on http://127.0.0.1:8080",
        "and, from other machines, on http://192.0.2.7:8080",
    ]
