"""What is redacted in real traffic: credentials, accounts and addresses, and nothing else.

The list was read by hand: it has the place and the kind of each change, how many there are, and a
digest of the values. `python -m tools.redactions ../shared/corpus` shows them. A new line is a
decision: is it a secret, an account or an address? If not, redaction has to let it stay.
"""

from __future__ import annotations

from hashlib import blake2b

import pytest

from mockllm.record.redaction.redact import Redactor
from tests.corpus import CORPUS, needs_corpus
from tools.redactions import changes, exchanges

REVIEWED: dict[tuple[str, str], tuple[int, str]] = {
    ("request", "password or key"): (5, "c953acb8"),  # passwords of WebRTC sessions
    ("response", "e-mail address"): (1, "d360bbbf"),  # of a charity, in an answer
    ("response", "password or key"): (5, "66993a46"),  # the same
    ("response openai-organization", "header"): (73, "fd24b65c"),  # the account
    ("response openai-project", "header"): (64, "b58cfa5e"),  # the account
    ("response set-cookie", "header"): (34, "d3529f72"),  # cookies
    ("response x-goog-upload-url", "header"): (1, "ed9ef116"),  # what opens an upload
    ("url", "?upload_id"): (1, "6de11be3"),  # the same
    ("url", "path"): (37, "5bbeed6c"),  # projects of Google Cloud
}
"""How many values, and their digest, by place and kind."""


@needs_corpus
@pytest.mark.slow
def test_only_what_was_reviewed_is_redacted() -> None:
    """In requests, answers, headers and URLs of chat, embeddings, files, images, sockets, ..."""
    redactor = Redactor()
    values: dict[tuple[str, str], list[str]] = {}
    for captured in exchanges([CORPUS]):
        for change in changes(redactor, captured):
            values.setdefault((change.place, change.kind), []).append(change.value)
    assert {what: (len(found), _digest(found)) for what, found in values.items()} == REVIEWED


def _digest(values: list[str]) -> str:
    return blake2b("\n".join(sorted(values)).encode(), digest_size=4).hexdigest()
