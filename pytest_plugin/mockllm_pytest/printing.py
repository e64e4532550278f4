"""Text for reports and the terminal: in that of others (names, requests, errors of services) it is
escaped what a terminal would obey. Imported in every run of pytest, so `mockllm` comes in late."""

from __future__ import annotations

from typing import NoReturn

import pytest


def printable(text: str) -> str:
    """Lines of text, in which what a terminal would obey is escaped."""
    from mockllm.core.text import printable_lines

    return printable_lines(text)


def failure(text: str) -> BaseException:
    """The failure of a test that is reported by a text alone, without a traceback."""
    return pytest.fail.Exception(printable(text), pytrace=False)


def fail(text: str) -> NoReturn:
    """Fails the test with a text, without a traceback."""
    raise failure(text)


def add_section(node: pytest.Item, when: str, title: str, text: str) -> None:
    """Adds a section to the report of a test."""
    node.add_report_section(when, title, printable(text))
