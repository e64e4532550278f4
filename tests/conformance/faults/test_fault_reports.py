"""Results about faults: files, terminal, pages."""

import json
from dataclasses import replace

import jsonschema
import pytest

from mockllm.conformance.fault_measured import rule_rows
from mockllm.conformance.fault_terminal import fault_exit_code, fault_lines
from mockllm.conformance.junit import junit_xml
from mockllm.conformance.known import KnownList, Standing, read_known, updated
from mockllm.conformance.results_file import dump_results, load_results
from mockllm.conformance.schemas import results_schema
from mockllm.conformance.site import build_site, overview_page
from tests.conformance.faults.made import CUT, fault_results
from tests.conformance.site.results import RIGHT, results
from tests.conformance.site.test_building import check_links


def standing(found, known=None):
    return Standing.of(rule_rows(found), known or KnownList(), KnownList())


def test_a_results_file_is_read_as_it_was_written():
    """It follows the schema, and whole numbers are seconds, too."""
    found = fault_results()
    text = dump_results(found)
    jsonschema.Draft202012Validator(results_schema()).validate(json.loads(text))
    assert load_results(text, "x") == found
    assert load_results(text.replace('"at": 0.0', '"at": 0'), "x") == found


def test_the_terminal_names_rule_case_and_log():
    text = "\n".join(fault_lines(fault_results(), standing(fault_results())))
    for line in (
        "mine 1.0 (python) over chat, faults: 4 rules in 2 cases",
        "cut-reported    wrong                4      1           2",
        "cut-reported: a client reports a cut",
        "chat/cut-in-a-call: the stream is cut inside the arguments of a call",
        "1. at 0.000 s, connection 1: POST /v1/chat/completions -> 200, 312 bytes; cut:after=3",
        "after 0.004 s and 312 bytes; mockllm closed it after 0.005 s",
        "leaves-nothing: no `left`",
        "retry-bounded: the client has no retries",
        "chat/cut-in-a-call: recovers: sends nothing",
        "again: mockllm check",
    ):
        assert line in text, f"{line}\n\n{text}"


RULES = {one.verdict: one for one in fault_results().rules}


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
    found = fault_results(rules=tuple(RULES[one] for one in verdicts), stopped=stopped)
    assert fault_exit_code(found, standing(found)) == code


def test_what_was_seen_once_in_three_times_is_shown_and_does_not_count():
    seen = fault_results(rules=(RULES["right"],), faults=(replace(CUT, wrong=()),))
    assert fault_exit_code(seen, standing(seen)) == 0
    assert "chat/cut-in-a-call: recovers: sends nothing" in "\n".join(
        fault_lines(seen, standing(seen))
    )


def test_the_report_has_a_second_matrix(tmp_path):
    """Rules and clients; each client has a page with its cases and the log of connections."""
    build_site([results("one", RIGHT), fault_results(), fault_results("other", "gemini")], tmp_path)
    check_links(tmp_path)
    first = (tmp_path / "index.html").read_text()
    assert "Which clients read LLM streams correctly?" in first
    assert "Which clients survive faults?" in first
    assert "broken in 1 of 4 cases" in first
    assert "not judged: no `left`" in first
    page = next(tmp_path.glob("faults/mine*.html")).read_text()
    for text in (
        "It breaks 1 of the 2 rules that were judged.",
        "ends without an error, with the text &#39;It is&#39;",
        "<code>cut:after=3 events</code> after 0.004 s and 312 bytes",
        "mockllm closed it after 0.005 s",
        "name: cut",
        "idle_timeout 0.3",
        "seen once and not again",
    ):
        assert text in page, text


def test_a_report_of_faults_alone_has_one_matrix(tmp_path):
    build_site([fault_results()], tmp_path)
    check_links(tmp_path)
    assert "read LLM streams" not in (tmp_path / "index.html").read_text().partition("<main")[2]
    assert "Which clients survive faults?" in overview_page([fault_results()])


def test_nothing_of_faults_becomes_markup(tmp_path):
    evil = "<script>alert(1)</script>\"'&\0\ud800"
    case = replace(CUT, about=evil, actual={"text": evil}, scenario=evil, reproduce=(evil,))
    found = fault_results(evil, faults=(case,), settings={evil: evil})
    build_site([found], tmp_path)
    for file in tmp_path.rglob("*.html"):
        assert "<script>alert" not in file.read_text(encoding="utf-8")


def test_a_rule_that_is_known_to_be_broken_does_not_fail_the_run(tmp_path):
    """JUnit has a test for each rule; one that is kept and on the list is a failure."""
    file = tmp_path / "known.txt"
    file.write_text("chat/cut-reported  # a proxy\nchat/retry-same\n")
    found = fault_results(rules=(RULES["wrong"], RULES["right"]))
    stands = standing(found, read_known(file))
    assert [one.case for one in stands.listed] == ["chat/cut-reported"]
    assert fault_exit_code(found, stands) == 1
    assert "PASSING" in "\n".join(fault_lines(found, stands))
    file.write_text("chat/cut-reported  # a proxy\n")
    stands = standing(found, read_known(file))
    assert fault_exit_code(found, stands) == 0
    text = junit_xml(replace(found, cases=rule_rows(found)), stands)
    assert 'name="chat/cut-reported"' in text
    assert "known: a proxy" in text
    text = junit_xml(replace(found, cases=rule_rows(found)), standing(found))
    assert 'type="rule"' in text
    names = [f"chat/{one.rule}" for one in found.rules]
    written = updated(KnownList(), standing(found), names)
    assert written.startswith("chat/cut-reported  # chat/cut-in-a-call: ends without an error")
