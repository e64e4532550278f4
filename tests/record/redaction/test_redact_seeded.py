"""Two hundred secrets in every part of an exchange, of which nothing is left."""

import base64
import json

import pytest

from mockllm.record.redaction.redact import Redactor
from mockllm.record.redaction.rules import Rules
from tests.record.redaction import secrets

RULES = Rules(patterns=(r"cust#\d+[a-z]?",))
COUNT = 200


def everything(captured):
    """Every byte of an exchange, and the decoded texts of its bodies."""
    request = json.loads(captured.request_body)
    user, assistant = request["messages"]
    note = json.loads(assistant["arguments"])["note"]
    file = base64.b64decode(user["content"]["file"].partition(",")[2]).decode()
    reply = captured.body.decode()
    body = captured.request_body.decode()
    texts = (secrets.joined_strings(reply), user["content"]["text"], note, file)
    return "\n".join((repr(captured), body, reply, *texts))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_nothing_is_left(part):
    """No secret and no 12 characters of one are in any byte; the events are unchanged."""
    for index in range(part, COUNT, 8):
        rng = secrets.generator(index)
        sentence, secret = secrets.secret(rng, index)
        captured = secrets.exchange(rng, index, sentence, secret)
        assert secret.split("\n")[0][-12:] in everything(captured)
        clean = Redactor(RULES).exchange(captured)
        left = everything(clean)
        assert not [part for part in secrets.parts(secret) if part in left], (index, secret)
        assert [chunk.at for chunk in clean.chunks] == [chunk.at for chunk in captured.chunks]
        assert all(chunk.data for chunk in clean.chunks)
        assert clean.body.count(b"\n") == captured.body.count(b"\n")
        assert Redactor(RULES).exchange(clean) == clean


@pytest.mark.slow
def test_all_secrets_of_a_run():
    """One redactor for all of them removes them too."""
    redactor = Redactor(RULES)
    drawn, left = [], []
    for index in range(COUNT):
        rng = secrets.generator(1000 + index)
        sentence, secret = secrets.secret(rng, index)
        drawn.append(secret)
        left.append(everything(redactor.exchange(secrets.exchange(rng, index, sentence, secret))))
    text = "\n".join(left)
    assert not [secret for secret in drawn if secret in text]
