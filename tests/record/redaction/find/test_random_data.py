"""Random data is no secret: signatures, embeddings and ids stay as they are."""

from __future__ import annotations

import base64
import json
import random
import uuid

import pytest

from mockllm.record.redaction.find.spans import is_inside_base64
from mockllm.record.redaction.redact import Redactor
from tests.record.redaction.secrets import found_in

KEY = "sk-proj-" + "Ab3dEf6hIj" * 4
BEFORE = "q7Rt2_KxW9-bLm4ZcV8nPd5YfH3jGs6TaE1u"


@pytest.mark.parametrize(
    ("before", "inside"),
    [(f"{BEFORE}-", True), ("", False), ("my-own-key-of-the-service-with-a-long-name-", False)],
)
def test_a_key_in_longer_base64(before: str, inside: bool) -> None:
    """What looks like a key there is an accident; after words it is a key."""
    text = f"x {before}{KEY} y"
    assert is_inside_base64(text, 2 + len(before), 2 + len(before) + len(KEY)) == inside
    assert bool(found_in(Redactor(), text)) != inside


def test_a_key_after_the_other_alphabet() -> None:
    """Standard base64 has no hyphen, so that the key begins there."""
    assert found_in(Redactor(), f"https://h/{BEFORE.replace('_', '+')}/{KEY}")


def test_the_strings_of_a_list_are_not_joined() -> None:
    """The end of one id and the beginning of the next make no key."""
    assert not found_in(Redactor(), json.dumps(["a1B2c3D4e5-sk-", "F6g7H8i9J0k1L2m3N4"]))


@pytest.mark.slow
def test_random_data_has_no_secret() -> None:
    """Of several megabytes: base64 of both alphabets, UUIDs, ids and embeddings."""
    rng = random.Random(3)
    found = []
    for _ in range(10):
        data = rng.randbytes(150_000)
        ids = [f"call_{rng.getrandbits(128):x}" for _ in range(2_000)]
        uuids = [str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(2_000)]
        floats = [rng.gauss(0, 0.03) for _ in range(5_000)]
        signature = base64.urlsafe_b64encode(data).decode()
        texts = (base64.b64encode(data).decode(), signature, base64.encodebytes(data).decode())
        for value in (*texts, ids, uuids, floats, {"signature": signature}):
            found += found_in(Redactor(), json.dumps(value))
    assert found == []
