"""`ServerOptions.session_in_body`: sessions that only the body of a request names."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

OPTIONS = ServerOptions(session_in_body=re.compile(rb"case-[0-9]+"))
(SCENARIO,) = loads(
    "scenario: hello\nmatch: {model: m}\nturns: [{reply: {text: hi}, repeat: true}]", "a"
)


def _ask(url: str, text: str, **headers: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json", "authorization": "Bearer k", **headers},
    )
    with urllib.request.urlopen(request) as response:
        response.read()


def test_the_body_names_the_session() -> None:
    """Where path and headers name none; otherwise they decide."""
    with ServerThread([SCENARIO], OPTIONS) as thread:
        _ask(thread.url, "this is case-12 and not case-13")
        _ask(thread.url, "this is none")
        _ask(f"{thread.url}/s/mine", "this is case-12")
        sessions = {
            name: len(found.journal)
            for name in ("case-12", "case-13", "default", "mine")
            if (found := thread.ask(thread.server.sessions.find, name)) is not None
        }
    assert sessions == {"case-12": 1, "default": 1, "mine": 1}


def test_a_body_that_is_too_large_is_refused_as_elsewhere() -> None:
    """It is read once, and refused where it is answered."""
    options = ServerOptions(session_in_body=re.compile(rb"case-[0-9]+"), max_body=100)
    with ServerThread([SCENARIO], options) as thread:
        try:
            _ask(thread.url, "case-12" * 100)
        except urllib.error.HTTPError as error:
            status = error.code
            error.close()
    assert status == 413
