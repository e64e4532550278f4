"""The table of rules: what was shown without mockllm, what was not, and three ways to cancel."""

from __future__ import annotations

import runpy

from measurements import fault_page
from measurements.entries import ROOT
from measurements.fault_page import reproduced, table
from mockllm.conformance.clients.client_results import rule_line
from mockllm.conformance.results import Client, Results
from tests.cases import for_all

KNOWN = "openai chat.completions.stream()"


def results(name: str, *broken: str) -> Results:
    """A client whose cases of cancelling are right, but for some."""
    cases = tuple(
        rule_line(
            f"chat/cancelled-{way}:cancel-closes",
            "cancel-closes",
            "wrong" if way in broken else "right",
            ("its connection stays open",) if way in broken else (),
        )
        for way in ("leave", "call", "drop")
    )
    cut = rule_line("chat/cut-in-text-close:cut-reported", "cut-reported", "wrong", ("no error",))
    return Results(Client(name), "chat", "http", "", "2026-01-01", cases=(*cases, cut))


@for_all(("name", "mark"), [(KNOWN, "✖"), ("nobody", "?")])
def test_a_mistake_that_was_not_shown_without_mockllm_is_a_question(name: str, mark: str) -> None:
    """It is shown with what was measured, and is no accusation."""
    text = table([results(name)])
    assert f"| `cut-reported` | {mark} 1 of 1 |" in text
    assert f"There are {int(mark == '✖')} ✖ and {int(mark == '?')} ?." in text
    assert ("not yet shown without mockllm, in cut-in-text-close" in text) is (mark == "?")


def test_each_way_to_cancel_has_a_row() -> None:
    """One that a client follows says nothing of another."""
    text = table([results("nobody", "drop")])
    assert "| `cancel-closes`, leave | ✓ |" in text
    assert "| `cancel-closes`, call | ✓ |" in text
    assert "| `cancel-closes`, drop | ? 1 of 1 |" in text


def test_what_was_shown_is_a_row_of_a_client_in_the_table() -> None:
    """No name of a client or of a row is wrong."""
    names = {one.client.name for one in fault_page.measured_faults()}
    assert set(reproduced()) <= names
    assert {row for rows in reproduced().values() for row in rows} <= set(fault_page.ROWS)


def test_the_log_has_what_is_played_without_mockllm() -> None:
    """Each play of docs/findings/resilience/reproduce.py, in its order, and with a result."""
    folder = ROOT / "docs" / "findings" / "resilience"
    script = runpy.run_path(str(folder / "reproduce.py"))
    log = (folder / "log.txt").read_text("utf-8")
    played = log.rstrip().split("\n\n")
    assert [one.splitlines()[0] for one in played] == [
        script["title"](one) for one in script["plays"]()
    ]
    assert all("request 1:" in one for one in played)
    assert str(ROOT) not in log
