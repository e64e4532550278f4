"""Placeholders for the folders of a client's machine: they hide values, and are filled again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.request import FILLED, Words, World

ADA = World(
    (
        ("cwd", "/home/ada/work/shop"),
        ("home", "/home/ada"),
        ("tmp", "/home/ada/.gemini/tmp/shop"),
        ("user", "ada"),
    )
)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("cd /home/ada/work/shop", "cd <cwd>"),
        ("in /home/ada/work/shop/a.py.", "in <cwd>/a.py."),
        ("in /home/ada/work/shop.", "in <cwd>."),
        ("/home/ada/work/shop2", "<home>/work/shop2"),
        ("/home/ada/work/shop.old", "<home>/work/shop.old"),
        ("/home/adam and /mnt/home/ada", "/home/adam and /mnt/home/ada"),
        ("/home/ada/.gemini/tmp/shop/x", "<tmp>/x"),
        (r"ls\n/home/ada/work/shop\n", r"ls\n<cwd>\n"),
        ("/h/projects/-home-ada-work-shop/memory", "/h/projects/<cwd-name>/memory"),
        ("-rw-r-- 1 ada ada 11 Nov 29 a.txt", "-rw-r-- 1 <user> <user> 11 Nov 29 a.txt"),
        ("/tmp\nada\n", "/tmp\n<user>\n"),
        ("tell ada, that ada is a language", "tell ada, that ada is a language"),
        ("usage: run <cwd> <!home>", "usage: run <!cwd> <!!home>"),
        ("<file>", "<file>"),
    ],
)  # fmt: skip
def test_values_are_hidden_where_they_stand(text, hidden):
    """The longest first, as whole names of folders; what reads like a placeholder is marked."""
    assert ADA.hide(text) == hidden
    assert ADA.fill(hidden) == text


PIECES = st.sampled_from(
    [value for _, value in ADA.values]
    + [f"<{name}>" for name in FILLED]
    + ["<!cwd>", "<", "!", ">", "/", " ", "\n", "-home-ada-work-shop", "x", "."]
)


@given(st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_filling_is_the_inverse_of_hiding(text):
    """Whatever the text has."""
    assert ADA.fill(ADA.hide(text)) == text


def test_only_what_is_named_is_hidden():
    """A text may be compared without the home and with the folder."""
    assert ADA.hide("/home/ada/work/shop /home/ada/x", ("home",)) == "<home>/work/shop <home>/x"
    assert World().hide("<cwd>") == "<cwd>"


def test_another_machine_fills_in_its_own_values():
    """A placeholder without a value stays, and is named."""
    ci = World((("cwd", "/builds/42"),))
    assert ci.fill("cat <cwd>/a <home>/b") == "cat /builds/42/a <home>/b"
    assert ci.lacking("cat <cwd>/a <home>/b") == "home"
    assert ci.lacking("cat <cwd>/a <!home>/b <file>") == ""


def test_words_are_texts():
    """With the machine of their client, which equality does not count."""
    words = Words.of("hi", ADA)
    assert (words, words.world) == ("hi", ADA)
    assert type(str(words)) is str
