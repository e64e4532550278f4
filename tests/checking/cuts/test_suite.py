"""`CutSuite` and `mockllm check --cuts`: the same judgements in pytest and for runners."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.conformance.results.file import read_results

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
EXAMPLE = (sys.executable, str(ROOT / "examples" / "runners" / "python" / "runner.py"))

HTTP = (sys.executable, str(ROOT / "tests" / "conformance" / "clients" / "http_runner.py"))
"""A whole client, which has no mistake about cuts."""

INI = """
    [pytest]
    addopts = -p no:langsmith_plugin -p no:randomly -p no:cacheprovider -p no:hypothesispytest
    asyncio_default_fixture_loop_scope = function
"""

HEAD = """
    from dataclasses import replace
    from mockllm.checking import Outcome
    from examples.accumulators import REFERENCES
    from examples.accumulators.lines import ReferenceBytes
    from mockllm_pytest import CutSuite

    class Silent(REFERENCES["chat"]):
        def outcome(self):
            return replace(super().outcome(), errors=())

"""


def suite(pytester, text):
    pytester.makeini(INI)
    pytester.makepyfile(HEAD + text)
    return pytester.runpytest_inprocess("-rsx")


def test_a_correct_accumulator_passes_both_tests(pytester):
    """At both levels."""
    result = suite(
        pytester,
        """
    class TestPayloads(CutSuite):
        api = "chat"

        def probe(self):
            return REFERENCES["chat"]()

    class TestBytes(CutSuite):
        api = "agui"
        level = "bytes"

        def probe(self):
            return ReferenceBytes("agui")
    """,
    )
    result.assert_outcomes(passed=4)


def test_the_shortest_prefix_is_in_the_message(pytester):
    """The test of the rule fails with the last event; the other rule has its own test."""
    result = suite(
        pytester,
        """
    class TestMine(CutSuite):
        api = "chat"

        def probe(self):
            return Silent()
    """,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*chat/cut-*@between-events:cut-reported (and * more like it)*",
            "*cut-reported: a client reports a stream that was cut*",
            "*prefixes fool the client; the shortest ends after 1 event, *",
            "*wrong: no error is reported*",
            '*last event: {"id":*',
        ]
    )


def test_known_mistakes_and_their_repair(pytester):
    """`xfail` excuses a rule; a rule that holds must not be on the list."""
    result = suite(
        pytester,
        """
    class TestMine(CutSuite):
        api = "chat"
        xfail = {"cut-reported": "#7", "cut-call-not-executed": "#8"}

        def probe(self):
            return Silent()
    """,
    )
    result.assert_outcomes(xfailed=1, failed=1)
    result.stdout.fnmatch_lines(["*XPASS(strict)?*8*"])


def test_what_cannot_be_judged_is_skipped(pytester):
    """A client that fails at every stream is skipped with the reason, and passes nothing."""
    result = suite(
        pytester,
        """
    class Failing(REFERENCES["chat"]):
        def outcome(self):
            return Outcome.of(errors=["nothing works"])

    class TestMine(CutSuite):
        api = "chat"

        def probe(self):
            return Failing()
    """,
    )
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["*the client fails at the whole stream, too: nothing works*"])


def test_a_client_that_cannot_be_run(pytester):
    """It fails one test, and the other is skipped."""
    result = suite(
        pytester,
        """
    class TestMine(CutSuite):
        api = "chat"

        def probe(self):
            import nowhere_to_be_found
    """,
    )
    result.assert_outcomes(failed=1, skipped=1)


# mockllm check --cuts

RUNNER = """\
import base64, json, sys

sys.path.insert(0, {folder!r})
from client import create

question = json.loads(sys.stdin.readline())
print(json.dumps({{"mockllm": 1, "client": {{"name": "cut client"}}}}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    client = create(question["api"])
    for item in message["feed"]:
        if question["level"] == "bytes":
            client.feed_bytes(base64.b64decode(item))
        else:
            client.feed_event(*item)
    answer = client.close()
{fault}
    print(json.dumps({{"id": message["id"], **answer}}), flush=True)
"""


def run(*arguments):
    return CliRunner().invoke(main, ["check", *arguments])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def runner(folder, fault):
    file = folder / "runner.py"
    file.write_text(RUNNER.format(folder=str(Path(EXAMPLE[1]).parent), fault=f"    {fault}"))
    return "--", sys.executable, str(file)


@pytest.mark.parametrize("level", ["bytes", "payloads"])
def test_the_example_runner_is_right(folder, level):
    """Exit code 0, and a results file with every line right."""
    done = run("--api", "agui", "--cuts", "--level", level, "--", *EXAMPLE)
    assert done.exit_code == 0, done.output
    assert re.search(r"^cut-call-not-executed +(\d+) +\1$", done.output, re.MULTILINE)
    results = read_results("mockllm-results/example-python-agui.json")
    assert {case.verdict for case in results.cases} == {"right"}
    assert results.arguments["cuts"] is True


def test_a_silent_client_is_found(folder):
    """Exit code 1, the shortest prefix in the terminal, its bytes in the results file."""
    done = run("--api", "chat", "--cuts", *runner(folder, 'answer["errors"] = []'))
    assert done.exit_code == 1, done.output
    assert "prefixes fool the client; the shortest ends after" in done.output
    assert "bytes after it: " in done.output
    results = read_results("mockllm-results/cut-client-chat.json")
    lines = {case.case: case for case in results.cases}
    wrong = lines["chat/cut-text@inside-character:cut-reported"]
    assert (wrong.verdict, wrong.cost) == ("silent", "data lost")
    last = wrong.stream.writes[-1]
    with pytest.raises(UnicodeDecodeError):
        last.decode()
    assert "--cuts" in wrong.reproduce[0]


def test_one_line_again(folder):
    """`--only` takes the names of the results file, of samples, and of places."""
    client = runner(folder, 'answer["errors"] = []')
    name = "chat/cut-text@inside-character:cut-reported"
    done = run("--api", "chat", "--cuts", "--only", name, *client)
    assert done.exit_code == 1, done.output
    results = read_results("mockllm-results/cut-client-chat.json")
    assert [case.case for case in results.cases] == [name]
    done = run("--api", "chat", "--cuts", "--only", "cut-txt", *client)
    assert done.exit_code == 2
    assert "there is no such sample, place or rule" in done.output


def test_known_mistakes(folder):
    """A list that `--update` wrote makes the run succeed; a line that passes fails it."""
    client = runner(folder, 'answer["errors"] = []')
    arguments = ("--api", "chat", "--cuts", "--known-failing", "known.txt")
    assert run(*arguments, "--update", *client).exit_code == 0
    assert run(*arguments, *client).exit_code == 0
    done = run(*arguments, *runner(folder, "pass"))
    assert done.exit_code == 1
    assert "PASSING" in done.output


def test_not_judged_has_an_exit_code(folder):
    """A client that fails at whole streams is not judged: exit code 2."""
    done = run("--api", "chat", "--cuts", *runner(folder, 'answer["errors"] = ["always"]'))
    assert done.exit_code == 2, done.output
    assert "NOT JUDGED" in done.output
    results = read_results("mockllm-results/cut-client-chat.json")
    assert {case.verdict for case in results.cases} == {"not judged"}


def test_a_client_that_marks_what_it_has_as_partial(folder):
    """`partial` is a report, too."""
    fault = 'answer["partial"], answer["errors"] = bool(answer["errors"]), []'
    done = run("--api", "chat", "--cuts", *runner(folder, fault))
    assert done.exit_code == 0, done.output


def test_a_client_without_calls(folder):
    """What it has no place for is not judged, and is no reason to fail."""
    done = run("--api", "chat", "--cuts", *runner(folder, 'del answer["tool_calls"]'))
    assert done.exit_code == 0, done.output
    assert "cut-call-not-executed: does not apply" in done.output
    assert "the client has no place for tool_calls" in done.output


def test_the_pages_of_a_report(folder):
    """Reports are made from such results as from any other."""
    client = runner(folder, 'answer["errors"] = []')
    done = run("--api", "chat", "--cuts", "--junit", "junit.xml", "--html", "pages", *client)
    assert done.exit_code == 1, done.output
    assert "cut-reported" in Path("junit.xml").read_text()
    assert Path("pages/index.html").is_file()


def test_whole_clients_over_http(folder):
    """The server cuts the answer: in an orderly way, and with a connection that is closed."""
    choice = ("--only", "cut-text", "--only", "cut-call")
    done = run("--api", "chat", "--cuts", "--http", *choice, "--", *HTTP)
    assert done.exit_code == 0, done.output
    results = read_results("mockllm-results/urllib-chat.json")
    names = {case.case for case in results.cases}
    assert {
        "chat/cut-call@inside-event:cut-call-not-executed",
        "chat/cut-call@inside-event+close:cut-call-not-executed",
    } <= names
    assert {case.verdict for case in results.cases} == {"right"}


def test_options_that_do_not_go_together(folder):
    """An option that would have no effect is refused."""
    for option in (("--variations", "3"), ("--policy", "malformed=skip")):
        done = run("--api", "chat", "--cuts", *option, "--", *EXAMPLE)
        assert done.exit_code == 2
        assert "--cuts goes with none of" in done.output


def test_scenarios_of_the_user(folder):
    """Their answers are cut, too."""
    Path("mine.yaml").write_text("scenario: mine\nturns:\n  - reply: {text: Hello}\n")
    choice = ("--scenarios", "mine.yaml", "--only", "mine")
    done = run("--api", "chat", "--cuts", *choice, "--", *EXAMPLE)
    assert done.exit_code == 0, done.output
    results = read_results("mockllm-results/example-python-chat.json")
    assert {case.case.partition("@")[0] for case in results.cases} == {"chat/mine"}
