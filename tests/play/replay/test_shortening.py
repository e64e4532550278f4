"""Bodies that are too large to keep: what is kept of them."""

from __future__ import annotations

import json

import pytest

from mockllm.play.replay.sessions.shortened_bodies import (
    LONGEST,
    MAX_BODY,
    is_shortened,
    shortened_body,
    shortened_value,
)


def test_a_body_at_the_bound_is_kept():
    """One byte more, and it is shortened."""
    whole = json.dumps("x" * (MAX_BODY - 2)).encode()
    assert shortened_body(whole) == whole
    cut = shortened_body(json.dumps("x" * (MAX_BODY - 1)).encode())
    assert len(cut) < 2048
    assert is_shortened(cut.decode())


def test_a_large_body_keeps_its_conversation():
    """Only the long strings are cut; each keeps its beginning, its length and a digest."""
    image = "data:image/png;base64," + "A" * MAX_BODY
    sent = {"messages": [{"role": "user", "content": [{"text": "é\ud800"}, {"url": image}]}]}
    kept = json.loads(shortened_body(json.dumps(sent).encode()))
    text, url = kept["messages"][0]["content"]
    assert text == {"text": "é\ud800"}
    assert url["url"].startswith("data:image/png;base64,AAA")
    assert f"[cut: {len(image)} characters, sha256 " in url["url"]


def test_different_texts_stay_different():
    """Equal texts stay equal; a text that was shortened is not shortened again."""
    first, second = "x" * LONGEST + "1", "x" * LONGEST + "2"
    assert shortened_value("x" * LONGEST) == "x" * LONGEST
    assert shortened_value([first]) == shortened_value([first])
    assert shortened_value(first) != shortened_value(second)
    assert shortened_value(shortened_value(first)) == shortened_value(first)


@pytest.mark.large
@pytest.mark.parametrize(
    "body",
    [b"\xff" * (MAX_BODY + 1), json.dumps(["x"] * (MAX_BODY // 4)).encode()],
    ids=["no JSON", "many short strings"],
)
def test_what_cannot_be_shortened_is_cut_off(body):
    """The first bytes are kept."""
    assert shortened_body(body) == body[:MAX_BODY]
