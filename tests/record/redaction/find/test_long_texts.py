"""Long texts: everything is found, at a cost that is proportional to their length."""

import base64

import pytest

from mockllm.record.redaction.find.finder import Finder

KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"
FILL = "and then it went on, "


@pytest.mark.slow
def test_a_key_in_a_long_text() -> None:
    """It is found once and whole wherever it lies."""
    for at in range(0, 120_000, 5_003):
        text = (FILL * 6000)[:at] + f" {KEY} " + FILL * 4000
        (found,) = Finder().find(text)
        assert (found.secret, found.parts) == (KEY, ((at + 1, at + 1 + len(KEY)),))


@pytest.mark.large
@pytest.mark.slow
def test_many_secrets_in_a_long_text() -> None:
    """The cost is proportional to their number: ten thousand are found in escapes, and beside
    placeholders."""
    text = "".join(
        f"a%20mail to user{number}@corp.io, REDACTED-{number}\\n" for number in range(10_000)
    )
    assert len({secret for found in Finder().find(text) for secret in found.secrets()}) == 10_000


def test_a_long_key() -> None:
    """It is found whole."""
    key = "sk-" + "a1B2c3D4" * 10_000
    text = FILL * 3000 + key + " " + FILL * 3000
    (found,) = Finder().find(text)
    assert found.secret == key


def test_long_text_in_base64() -> None:
    """A secret near its end is found, however long the encoded text is."""
    run = base64.b64encode((FILL * 5000 + KEY).encode()).decode()
    text = FILL * 3000 + run + " " + FILL * 3000
    (found,) = Finder().find(text)
    assert set(found.secrets()) == {KEY}


def test_bytes_that_are_no_text_are_searched_between() -> None:
    """In the bytes of a picture a text, such as the author's address, is found."""
    data = bytes(range(128, 256)) * 20 + b"\x00author: ada.lovelace@corp.io\x00" + b"\xff\x00" * 50
    text = data.decode("utf-8", "surrogateescape")
    (found,) = Finder().find(text)
    assert found.secret == "ada.lovelace@corp.io"
    assert text[slice(*found.parts[0])] == found.secret
