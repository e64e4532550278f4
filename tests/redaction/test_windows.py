"""Long texts are searched in windows: what is found depends on the text alone."""

import base64
import re

from hypothesis import example, given
from hypothesis import strategies as st

from mockllm.redaction.finder import Finder, Found
from mockllm.redaction.windows import LONGEST_WHOLE, WindowedSearch, WindowSizes
from tests.cases import for_all

SMALL = WindowSizes(zone=16, before=6, after=12, at_end=2)
WORD = re.compile(r"(?<![a-z])k[0-9]+")


def words(text: str) -> list[Found]:
    return [Found("word", one[0], (one.span(),)) for one in WORD.finditer(text)]


texts = st.lists(
    st.sampled_from(["k1", "k123456", "a", " ", "b k9 ", "k" + "7" * 40, "xk5"]), max_size=40
).map("".join)


@given(texts, st.lists(st.integers(0, 300), max_size=10))
@example("k" + "7" * 200, [3])
def test_every_splitting_gives_what_one_search_gives(text: str, cuts: list[int]) -> None:
    """Words that are as long as several windows are found whole, and each is found once."""
    search = WindowedSearch(words, SMALL)
    last = 0
    for at in sorted({min(len(text), one) for one in cuts}):
        search.add(text[last:at])
        last = at
    search.add(text[last:])
    assert search.finish() == words(text)


@given(texts)
def test_another_search_of_the_same_text(text: str) -> None:
    """`again` searches the windows that have changed, and keeps what was found in the others."""
    search = WindowedSearch(lambda window: [], SMALL)
    search.add(text)
    assert search.finish() == []
    assert search.again(text, words, lambda window: "k" in window) == words(text)
    assert search.again(text, words, lambda window: False) == []


KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"
FILL = "and then it went on, "


@for_all("near", range(-40, 41, 8))
@for_all("border", [1 << 15, (1 << 15) + (1 << 14), 1 << 16, LONGEST_WHOLE])
def test_a_key_at_a_border_of_windows(near: int, border: int) -> None:
    """It is found once and whole wherever it lies."""
    at = border + near
    text = (FILL * 5000)[:at] + f" {KEY} " + FILL * 4000
    (found,) = Finder().find(text)
    assert found.parts == ((at + 1, at + 1 + len(KEY)),)
    assert found.secret == KEY


def test_a_key_that_is_longer_than_a_window() -> None:
    """Its window becomes longer."""
    key = "sk-" + "a1B2c3D4" * 10_000
    text = FILL * 3000 + key + " " + FILL * 3000
    (found,) = Finder().find(text)
    assert found.secret == key


def test_text_in_base64_that_is_longer_than_a_window() -> None:
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
