"""The runners of examples/runners: each is built, and its client gets every case right."""

from __future__ import annotations

import subprocess
from functools import cache

import pytest
from _pytest.mark import ParameterSet

from mockllm.checking import Case, Policy, cases
from mockllm.checking.cases.scenarios import PLAIN
from mockllm.cli.init import LANGUAGES
from mockllm.conformance.clients.runner import pipe_runner
from mockllm.conformance.clients.self_test import self_test
from mockllm.core.errors import ProbeError
from tests.conformance.clients.example_runners.building import TOOLS, built
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

VARIATIONS = 1


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(cases("chat", variations=VARIATIONS))


OTHER_APIS = ["responses", "anthropic", "gemini", "agui"]
OTHER_APIS += ["ollama", "completions", "cohere", "bedrock"]
"""Besides Chat Completions, those that the runners in `INSTALLED` languages read."""

NUMBERS = {f"{api}/kit-arguments-large-integers" for api in ("gemini", "ollama")}
"""JavaScript's numbers lose the last digits of these, as its README says."""


def plain_cuts() -> tuple[Case, ...]:
    """The cases without a variation: cuts of bytes do not show in payloads."""
    return tuple(case for case in all_cases() if case.variation == PLAIN)


INSTALLED = ("javascript", "python")
"""The languages of `make test`; the others' tool chains are for `make test-all`."""


def _language(name: str) -> ParameterSet:
    return pytest.param(name, marks=() if name in INSTALLED else pytest.mark.heavy)


def test_every_language_has_its_tools() -> None:
    """No language is left out of these tests."""
    assert set(TOOLS) == set(LANGUAGES)


@pytest.mark.parametrize("language", [_language(one) for one in LANGUAGES])
def test_the_runner_has_no_mistake_of_its_own(language, tmp_path):
    """It refuses what it has not, keeps nothing from case to case, and writes UTF-8 at once."""
    command = built(language, tmp_path)
    assert self_test(command, "chat", limit=GIVE_UP, cwd=tmp_path) == []


@pytest.mark.parametrize("language", [_language(one) for one in LANGUAGES])
def test_the_client_gets_every_case_right(language, tmp_path):
    """At both levels no case is wrong, and every field is judged; another API or level is refused,
    with the reason."""
    folder = tmp_path / "my runner"
    command = built(language, folder)
    for level in ("bytes", "payloads"):
        played = all_cases() if level == "bytes" else plain_cuts()
        with pipe_runner(command, "chat", level, limit=GIVE_UP, cwd=folder) as runner:
            report = runner.examine(played, Policy())
            assert runner.hello.client.language == language
            assert runner.attachment.processes.restarts == 0
        assert report.good, f"{level}: {report}"
        verdicts = {result.judgement.verdict for result in report.results}
        assert verdicts <= {"right", "tolerated"}
        assert not any(result.judgement.not_judged for result in report.results)
        assert len(report.results) + len(report.skipped) == len(played)
        in_bytes_only = {one.name for one in played if one.events is None}
        assert set(report.skipped) == (in_bytes_only if level == "payloads" else set())
    for first in ('{"mockllm":1,"api":"other","level":"bytes"}', '{"api":"chat","level":"http"}'):
        refused = subprocess.run(
            command, cwd=folder, input=first, capture_output=True, text=True, timeout=GIVE_UP
        )
        assert refused.returncode != 0
        assert refused.stdout == ""
        assert "level" in refused.stderr


@pytest.mark.parametrize("api", OTHER_APIS)
@pytest.mark.parametrize("language", INSTALLED)
def test_the_clients_of_other_apis(language, api, tmp_path):
    """The client of each API gets every case right, but for what the language cannot do."""
    command = built(language, tmp_path)
    with pipe_runner(command, api, limit=GIVE_UP, cwd=tmp_path) as runner:
        report = runner.examine(cases(api, variations=0), Policy())
    found = {result.case.name: result.judgement for result in report.results}
    assert not any(one.not_judged for one in found.values())
    wrong = {n for n, one in found.items() if one.verdict not in ("right", "tolerated")}
    assert wrong == (NUMBERS & found.keys() if language == "javascript" else set())


BUGS = {
    "go": ("chat.go", "chunk := object(payload)", "chunk := object(payload); _ = c.calls[7]"),
    "javascript": ("chat.mjs", "const chunk = object(payload);", "const chunk = payload.a.b;"),
    "python": ("chat.py", "chunk = obj(payload)", "chunk = payload['a']"),
}


@pytest.mark.parametrize("language", [_language(bug) for bug in BUGS])
def test_a_client_that_raises_is_a_crash(language, tmp_path):
    """The place that raised is reported, and the next case is judged by the same process."""
    folder = tmp_path / language
    command = built(language, folder)
    file, right, wrong = BUGS[language]
    code = (folder / file).read_text()
    assert right in code
    (folder / file).write_text(code.replace(right, wrong))
    if language == "go":
        subprocess.run(["go", "build", "-o", "runner", "."], cwd=folder, check=True)
    with pipe_runner(command, "chat", limit=GIVE_UP, cwd=folder) as runner:
        report = runner.examine(all_cases()[:3], Policy())
        assert runner.attachment.processes.restarts == 0
    assert [result.judgement.verdict for result in report.results] == ["crash"] * 3
    for result in report.results:
        assert f"{file}:" in result.judgement.exception
        assert "feed" in result.judgement.exception


def test_a_build_that_is_missing_is_an_error(tmp_path):
    """A runner that was not built cannot be judged."""
    with pytest.raises(ProbeError, match="cannot be started"):
        pipe_runner([str(tmp_path / "runner")], "chat").__enter__()
