"""Results as a JUnit file, which every CI shows: one test case each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from mockllm.conformance.results import CaseResult, Results
from mockllm.conformance.results.known import Standing


def junit_xml(results: Results, standing: Standing) -> str:
    """The text of a JUnit file.

    A mistake that is not on a list is a failure, and so is a case on the list of failing ones that
    passes. What the adapter raised is an error. What was not judged, is known, or comes with the
    plain form of the case is skipped, with the reason.
    """
    cases = [_case(case, results, standing) for case in results.cases]
    client = results.client
    suite = ET.Element(
        "testsuite",
        name=xml_text(f"mockllm check {client.name} {results.api}"),
        tests=str(len(cases)),
        failures=_count(cases, "failure"),
        errors=_count(cases, "error"),
        skipped=_count(cases, "skipped"),
        time="0",
        timestamp=xml_text(f"{results.date}T00:00:00"),
        hostname="localhost",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _facts(results):
        ET.SubElement(properties, "property", name=name, value=xml_text(value))
    suite.extend(cases)
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _facts(results: Results) -> Iterable[tuple[str, str]]:
    client = results.client
    facts = {
        "client": f"{client.name} {client.version}".strip(),
        "language": client.language,
        "api": results.api,
        "level": results.level,
        "mockllm": f"{results.mockllm} {results.commit}".strip(),
        "stopped": results.stopped,
    }
    return [(name, value) for name, value in facts.items() if value]


def _count(cases: Iterable[ET.Element], tag: str) -> str:
    return str(sum(case.find(tag) is not None for case in cases))


def _case(case: CaseResult, results: Results, standing: Standing) -> ET.Element:
    element = ET.Element(
        "testcase",
        classname=xml_text(f"mockllm.{results.api}.{case.group.replace(' ', '_')}"),
        name=xml_text(case.case),
        time="0",
    )
    wrong = _problem(case, standing)
    if wrong is not None:
        tag, kind, message = wrong
        problem = ET.SubElement(element, tag, message=xml_text(message))
        if tag != "skipped":
            problem.set("type", kind)
            problem.text = xml_text("\n".join(_details(case)))
    return element


def _problem(case: CaseResult, standing: Standing) -> tuple[str, str, str] | None:
    """The tag, the type and the message of what is wrong with a case."""
    message = case.exception or next(iter(case.differences), "")
    if case in standing.passing:
        return "failure", "passes", "passes, and is on the list of failing cases: remove it there"
    if case.verdict == "adapter":
        return "error", "adapter", case.reason
    if case.verdict in ("not judged", "not applicable"):
        return "skipped", "", f"{case.verdict}: {case.reason}"
    if case in standing.new:
        return "failure", case.cost or "", message
    if case.failed:
        return "skipped", "", f"known: {standing.reason(case.case) or message}"
    if case.differences:
        return "skipped", "", f"{case.reason}: {case.baseline or message}"
    return None


def _details(case: CaseResult) -> Iterable[str]:
    if case.exception:
        yield case.exception
    yield from case.differences
    yield from ("", "To see it again:", *case.reproduce)


_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(value: str) -> str:
    """A text without the characters that XML forbids: they are written as escapes."""
    return _ILLEGAL.sub(lambda match: f"\\u{ord(match[0]):04x}", value)
