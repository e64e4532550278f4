"""Results about faults: files, terminal, pages."""

import json
from dataclasses import replace

import jsonschema
import pytest

from mockllm.conformance.reports.junit import junit_xml
from mockllm.conformance.reports.terminal import exit_code, terminal_lines
from mockllm.conformance.results import rule_verdict
from mockllm.conformance.results.file import dump_results, load_results
from mockllm.conformance.results.known import KnownList, Standing, read_known, updated_text
from mockllm.conformance.site import build_site, overview_page
from tests.conformance.clients.faults.made import (
    CUT,
    NOT_APPLICABLE,
    NOT_JUDGED,
    ONCE,
    RIGHT,
    WRONG,
    fault_results,
)
from tests.conformance.schemas import results_schema
from tests.conformance.site.results import RIGHT as READ
from tests.conformance.site.results import results
from tests.conformance.site.test_building import check_links


def standing(found, known=None):
    return Standing.of(found.cases, known or KnownList(), KnownList())


def test_a_results_file_is_read_as_it_was_written():
    """It follows the schema, and whole numbers are seconds, too."""
    found = fault_results()
    text = dump_results(found)
    jsonschema.Draft202012Validator(results_schema()).validate(json.loads(text))
    assert load_results(text, "x") == found
    assert load_results(text.replace('"at": 0.0', '"at": 0'), "x") == found


def test_the_terminal_names_rule_case_and_log():
    text = "\n".join(terminal_lines(fault_results(), standing(fault_results())))
    for line in (
        "mine 1.0 (python) over chat, level http: 6 cases",
        "cut-reported        2      1      1         data lost",
        "chat/cut-in-a-call:cut-reported",
        "cut-reported: a client reports a stream that was cut",
        "ends without an error, with the text 'It is'",
        "the stream is cut inside the arguments of a call",
        "1. at 0.000 s, connection 1: POST /v1/chat/completions -> 200, 312 bytes; cut:after=3",
        "after 0.004 s and 312 bytes; mockllm closed it after 0.005 s",
        "1 case: leaves-nothing: no `left`",
        "1 case: retry-bounded: does not apply: the client has no retries",
        "chat/cut-in-a-call:recovers: sends nothing",
        "again: mockllm check",
    ):
        assert line in text, f"{line}\n\n{text}"


@pytest.mark.parametrize(
    ("others", "line"),
    [
        (2, "also in chat/a0, chat/a1"),
        (6, "also in chat/a0, chat/a1, chat/a2, chat/a3, chat/a4, chat/a5"),
        (8, "also in chat/a0, chat/a1, chat/a2, chat/a3, chat/a4, chat/a5 and 2 more"),
    ],
)
def test_the_terminal_names_six_more_cases_of_a_rule(others, line):
    more = [replace(WRONG, case=f"chat/a{number}:cut-reported") for number in range(others)]
    found = fault_results(cases=(WRONG, *more))
    assert f"    {line}" in list(terminal_lines(found, standing(found)))


@pytest.mark.parametrize(
    ("requests", "line"), [(8, ""), (9, "and 1 more requests"), (12, "and 4 more requests")]
)
def test_the_terminal_shows_eight_requests_of_a_case(requests, line):
    log = tuple(replace(CUT.log[0], number=number) for number in range(1, requests + 1))
    found = fault_results(plays={"chat/cut-in-a-call": replace(CUT, log=log)})
    text = "\n".join(terminal_lines(found, standing(found)))
    assert text.count("POST /v1/chat/completions ->") == 8
    assert ("more requests" in text) == bool(line)
    assert line in text


ROWS = {one.verdict: one for one in (RIGHT, WRONG, NOT_JUDGED, NOT_APPLICABLE)}


@pytest.mark.parametrize(
    ("verdicts", "stopped", "code"),
    [
        (["right", "wrong", "not judged"], "", 1),
        (["right", "not applicable"], "", 0),
        (["right", "not judged"], "", 2),
        (["right"], "interrupted", 2),
        (["not applicable"], "", 2),
        ([], "", 2),
    ],
)
def test_the_exit_code_says_whether_everything_was_judged(verdicts, stopped, code):
    found = fault_results(cases=tuple(ROWS[verdict] for verdict in verdicts), stopped=stopped)
    assert exit_code(found, standing(found)) == code


def test_what_was_seen_once_in_three_times_is_shown_and_does_not_count():
    seen = fault_results(cases=(ONCE,))
    assert exit_code(seen, standing(seen)) == 0
    text = "\n".join(terminal_lines(seen, standing(seen)))
    assert "chat/cut-in-a-call:recovers: sends nothing" in text


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        (["right", "wrong"], "wrong"),
        (["right", "not judged"], "right"),
        (["right", "not judged", "not judged"], "not judged"),
        (["right", "not applicable"], "right"),
        (["not judged", "not applicable"], "not judged"),
        (["not applicable"], "not applicable"),
        ([], "not judged"),
    ],
)
def test_a_rule_is_kept_where_it_was_judged_in_half_of_the_cases(verdicts, whole):
    assert rule_verdict([ROWS[verdict] for verdict in verdicts]) == whole


def test_the_report_has_a_second_matrix(tmp_path):
    """Rules and clients; each client has a page with its cases and the log of connections."""
    build_site([results("one", READ), fault_results(), fault_results("other", "gemini")], tmp_path)
    check_links(tmp_path)
    first = (tmp_path / "index.html").read_text()
    assert "Which clients read LLM streams correctly?" in first
    assert "Which clients survive faults?" in first
    assert "data lost: 1 of 2 wrong" in first
    assert "not judged (cases: 1 not judged)" in first
    page = next(tmp_path.glob("clients/mine-chat*.html")).read_text()
    for text in (
        "It makes mistakes in 1 of the 3 topics that were judged.",
        "Ends without an error, with the text &#39;It is&#39;.",
        "idle_timeout 0.3",
        "Once in three times it was not: sends nothing.",
    ):
        assert text in page, text
    page = next(tmp_path.glob("cells/mine-chat*/*cut-in-a-call-cut-reported*.html")).read_text()
    for text in (
        "ends without an error, with the text &#39;It is&#39;",
        "<code>cut:after=3 events</code> after 0.004 s and 312 bytes",
        "mockllm closed it after 0.005 s",
        "name: cut",
    ):
        assert text in page, text


def test_a_report_of_faults_alone_has_one_matrix(tmp_path):
    build_site([fault_results()], tmp_path)
    check_links(tmp_path)
    assert "read LLM streams" not in (tmp_path / "index.html").read_text().partition("<main")[2]
    assert "Which clients survive faults?" in overview_page([fault_results()])


def test_nothing_of_faults_becomes_markup(tmp_path):
    evil = "<script>alert(1)</script>\"'&\0\ud800"
    play = replace(CUT, title=evil, answer={"text": evil}, scenario=evil)
    wrong = replace(WRONG, differences=(evil,), reproduce=(evil,))
    plays = {wrong.played: play}
    found = fault_results(evil, cases=(wrong,), plays=plays, settings={evil: evil})
    build_site([found], tmp_path)
    for file in tmp_path.rglob("*.html"):
        assert "<script>alert" not in file.read_text(encoding="utf-8")


def test_a_rule_that_is_known_to_be_broken_does_not_fail_the_run(tmp_path):
    """JUnit has a test for each case and rule; one that is kept and on the list is a failure."""
    file = tmp_path / "known.txt"
    file.write_text("chat/*:cut-reported  # a proxy\nchat/*:retry-same\n")
    found = fault_results(cases=(WRONG, RIGHT))
    stands = standing(found, read_known(file))
    assert [one.case for one in stands.listed] == [WRONG.case]
    assert exit_code(found, stands) == 1
    assert "PASSING" in "\n".join(terminal_lines(found, stands))
    file.write_text("chat/*:cut-reported  # a proxy\n")
    stands = standing(found, read_known(file))
    assert exit_code(found, stands) == 0
    text = junit_xml(found, stands)
    assert f'name="{WRONG.case}"' in text
    assert "known: a proxy" in text
    text = junit_xml(found, standing(found))
    assert 'type="data lost"' in text
    names = [case.case for case in found.cases]
    written = updated_text(KnownList(), standing(found), names)
    assert written.startswith(f"{WRONG.case}  # data lost: ends without an error")
