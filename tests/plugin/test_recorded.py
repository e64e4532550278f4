"""The traffic of a test, recorded once and replayed, end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

# Imported once here, and not again in every run: see conftest.
import anthropic  # noqa: F401 - see above
import openai  # noqa: F401 - see above
import pytest

import mockllm.serve.server.recording.recorder  # noqa: F401 - see above
import mockllm_pytest.recording  # noqa: F401 - see above
from tests.serve.server.recording.odd_upstream import (
    EVENTS,
    OddUpstream,
    message_events,
    text_events,
)

pytestmark = pytest.mark.slow

KEY = "sk-live-4fQ9zTk2mVx7RbN1cYp8"
PROMPT_KEY = "sk-proj-Zt81mQ4xV7bN2cKp9RwLdE6uYh3s"

CLIENTS = """
    import anthropic
    import openai
    import pytest

    def chat(text):
        with openai.OpenAI(max_retries=0, timeout=60) as client:
            with client.chat.completions.stream(
                model="gpt-4o", messages=[{"role": "user", "content": text}]
            ) as stream:
                return stream.get_final_completion().choices[0].message.content

    def messages(text):
        with anthropic.Anthropic(max_retries=0, timeout=60) as client:
            with client.messages.stream(
                model="claude-x", max_tokens=9, messages=[{"role": "user", "content": text}]
            ) as stream:
                return stream.get_final_text()
"""


class Service(OddUpstream):
    """A service that numbers its answers."""

    def __init__(self):
        super().__init__(self._answer)

    async def _answer(self, request, wire):
        text = f"answer {len(self.requests)}"
        if "/messages" in request.target:
            await wire.events(*message_events(text))
        elif request.json.get("stream"):
            await wire.events(*text_events(text))
        else:
            await wire.body(json.dumps(completion(text)), "Content-Type: application/json")


def completion(text):
    """An answer of Chat Completions as one JSON body."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [{**choice, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """Sets the keys of a user, and no service in the environment."""
    for name in ("", "_OPENAI", "_ANTHROPIC", "_GEMINI", "_AGUI"):
        monkeypatch.delenv(f"MOCKLLM_UPSTREAM{name}", raising=False)
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.fixture
def service():
    with Service() as running:
        yield running


def recording(mode, service):
    return (f"--mockllm-record={mode}", "--mockllm-upstream", service.url)


def files(project):
    folder = project.path / "recorded"
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def content(project):
    return {name: (project.path / "recorded" / name).read_bytes() for name in files(project)}


def both(*questions, expected="True"):
    """A test that sends each question to both services."""
    requests = ", ".join(f"chat({text!r}), messages({text!r})" for text in questions)
    return f"""{CLIENTS}
    @pytest.mark.mockllm_recorded
    def test_it(mockllm_session):
        answers = [{requests}]
        print("answers:", answers)
        print("outcomes:", [(one.outcome, one.played.recorded) for one in mockllm_session.journal])
        assert {expected}
    """


def test_official_clients_are_recorded_once_and_replayed(project, run):
    """The first run records the services; later runs replay the same answers without them."""
    with Service() as service:
        result = run(both("Hello"), "-s", *recording("once", service))
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(
            [
                "*answers: [[]'answer 1', 'answer 2']",
                "outcomes: [[]('forwarded', ''), ('forwarded', '')]",
                "*= mockllm recordings =*",
                "test_it.py::test_it",
                "2 exchanges recorded in recorded/test_it/test_it",
                "  POST /v1/chat/completions: turn 1 of hello*",
                "  POST /v1/messages: turn 1 of hello-2*",
            ]
        )
        sent = [
            request.header("authorization") + request.header("x-api-key")
            for request in service.requests
        ]
        assert [keys[-1].removeprefix("Bearer ") for keys in sent] == [KEY, KEY]
    assert files(project) == [
        f"test_it/test_it/hello{end}" for end in ("-2.1.jsonl", "-2.yaml", ".1.jsonl", ".yaml")
    ]
    for mode in ((), ("--mockllm-record=once",)):
        result = run(both("Hello"), "-s", *mode)
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(
            [
                "*answers: [[]'answer 1', 'answer 2']",
                "outcomes: [[]('played', 'exact'), ('played', 'exact')]",
            ]
        )
        result.stdout.no_fnmatch_line("*mockllm recordings*")


def test_a_recording_that_is_too_old(project, run, service):
    """A warning, or with `:error` a failure, from the option or the ini file; each recording holds
    its date, so that one of today is not too old."""
    run(both("Hello"), *recording("once", service)).assert_outcomes(passed=1)
    run(both("Hello"), "--mockllm-max-age", "1d:error").assert_outcomes(passed=1)
    for file in (project.path / "recorded" / "test_it" / "test_it").glob("*.jsonl"):
        dated = re.sub(r'"at":"[^"]*"', '"at":"2020-01-02T03:04:05Z"', file.read_text())
        file.write_text(dated)
    result = run(both("Hello"), "-W", "default", "--mockllm-max-age", "4w")
    result.assert_outcomes(passed=1)
    lines = result.stdout.str().count("was recorded on 2020-01-02")
    assert lines == 2
    result.stdout.fnmatch_lines("*hello.1.jsonl was recorded on 2020-01-02, * at most 28 are *")
    age = "mockllm_max_age = 30d:error"
    project.makeini(f"[pytest]\nasyncio_default_fixture_loop_scope = function\n{age}\n")
    result = run(both("Hello"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines("*hello.1.jsonl was recorded on 2020-01-02, *")
    result = run(both("Hello"), "--mockllm-max-age", "soon")
    result.stderr.fnmatch_lines("*'soon' is no age such as 30d or 4w, or 30d:error*")


def test_a_service_on_this_machine_is_recorded_by_its_own_url(project, run, service):
    """The client asks the service itself. Of several on this machine, only that which is named, or
    which the recording is of, is answered here."""
    text = f"""{CLIENTS}
    import httpx

    @pytest.mark.mockllm_recorded
    def test_it():
        with openai.OpenAI(base_url="{service.url}/v1", max_retries=0) as client:
            answer = client.chat.completions.create(
                model="m", messages=[{{"role": "user", "content": "Hello"}}]
            )
        assert answer.choices[0].message.content == "answer 1"
        with pytest.raises(httpx.ConnectError):
            httpx.get("http://127.0.0.1:9/")
    """
    run(text, *recording("once", service)).assert_outcomes(passed=1)
    assert len(service.requests) == 1
    run(text).assert_outcomes(passed=1)
    assert len(service.requests) == 1


def test_an_unrecorded_request_fails_with_the_command_that_records_it(project, run, service):
    """An unrecorded request fails the test; the message has both commands to record it."""
    run(both("Hello"), *recording("once", service)).assert_outcomes(passed=1)
    before = content(project)
    result = run(both("Hello", "More"), "--mockllm-record=once")
    result.assert_outcomes(failed=1)
    again = '*: pytest "test_it.py::test_it" --mockllm-record='
    result.stdout.fnmatch_lines(
        [
            "*nothing answers it*",
            f"To record what is new{again}new_episodes --mockllm-upstream openai=https://api*",
            f"To record it all again{again}all --mockllm-upstream openai=https://api.openai.com",
        ]
    )
    assert len(service.requests) == 2
    assert content(project) == before


def test_a_test_without_a_recording_fails_with_the_command_that_records_it(run):
    """Scenarios do not answer it, and the verdict fails it even if the client's error is caught."""
    result = run(
        """
        import pytest
        from client import post, user

        @pytest.mark.mockllm_recorded
        def test_it():
            assert post(user("tell me the secret numbers")).status_code == 404
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "mockllm: request 1 matches nothing:*",
            'Nothing is recorded. To record it: pytest "test_it.py::test_it" '
            "--mockllm-record=once --mockllm-upstream openai=https://api.openai.com",
            "To allow it: @pytest.mark.mockllm(unmatched=True)",
        ]
    )


def test_new_episodes_are_added(project, run, service):
    """Recorded requests are replayed; new ones are forwarded and recorded in addition."""
    run(both("Hello"), *recording("once", service)).assert_outcomes(passed=1)
    before = content(project)
    result = run(both("Hello", "More"), "-s", *recording("new_episodes", service))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*answers: [[]'answer 1', 'answer 2', 'answer 3', 'answer 4']"])
    after = content(project)
    assert before.items() <= after.items()
    assert len(after) == 8
    result = run(both("Hello", "More"), "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*answers: [[]'answer 1', 'answer 2', 'answer 3', 'answer 4']"])


def test_new_episodes_names_recordings_that_are_no_longer_requested(run, service):
    """The report names recordings that were not requested: a strict replay fails on them."""
    run(both("Hello"), *recording("once", service)).assert_outcomes(passed=1)
    result = run(both("More"), *recording("new_episodes", service))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["  no longer requested: hello, hello-2", "  to record it all again: pytest *=all"]
    )
    result = run(both("More"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["mockllm: no turn of hello was played (1 turn)", "To record it all again: *=all*"]
    )


def test_all_replaces_the_recording(project, run, service):
    """`all` replaces the old recording, and keeps files that a person added."""
    run(both("Hello", "Old"), *recording("once", service)).assert_outcomes(passed=1)
    own = project.path / "recorded" / "test_it" / "test_it" / "notes.yaml"
    own.write_text("scenario: notes\nmatch: {user: never}\nturns: [{reply: {text: a}}]\n")
    result = run(both("Hello"), "-s", *recording("all", service))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*answers: [[]'answer 5', 'answer 6']"])
    assert len(files(project)) == 5
    own.unlink()
    result = run(both("Hello"), "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*answers: [[]'answer 5', 'answer 6']"])


def test_all_keeps_the_recording_if_the_service_does_not_answer(project, run):
    """`all` keeps the old recording if the service does not answer."""
    with Service() as service:
        run(both("Hello"), *recording("once", service)).assert_outcomes(passed=1)
    before = content(project)
    result = run(both("Hello"), *recording("all", service))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*502, no service answers*", "nothing was recorded; what was there stays"]
    )
    assert content(project) == before


def test_secrets_reach_no_file(project, run, service):
    """No file has the client's keys, a key or address in a prompt, or a match of mockllm.toml."""
    (project.path / "mockllm.toml").write_text("[redact]\npatterns = ['cust_[0-9]+']\n")
    text = f"My key is {PROMPT_KEY}, I am cust_4711, mail jane@example.org"
    run(both(text), *recording("once", service)).assert_outcomes(passed=1)
    run(both(text)).assert_outcomes(passed=1)
    written = b"".join(content(project).values())
    assert b"answer 1" in written
    for secret in (KEY, PROMPT_KEY, "cust_4711", "jane@example.org"):
        assert secret.encode() not in written


def test_options_say_what_is_secret_and_what_stays(project, run, service):
    """Those of the command line count; a mistake has the name of the option."""
    text = "I am cust_4711, mail jane@example.org"
    options = ("--mockllm-keep=email", "--mockllm-redact=cust_[0-9]+")
    run(both(text), *recording("once", service), *options).assert_outcomes(passed=1)
    written = b"".join(content(project).values())
    assert b"jane@example.org" in written
    assert b"cust_4711" not in written
    run(both(text)).assert_outcomes(passed=1)
    wrong = run(both("Hello"), *recording("all", service), "--mockllm-keep=emial")
    wrong.assert_outcomes(errors=1)
    wrong.stdout.fnmatch_lines(["*--mockllm-keep: 'emial' is no kind of secret; did you mean*"])


def test_a_failed_test_keeps_its_recording(project, run, service):
    """The recording is kept, and the report has the command to replace it."""
    result = run(both("Hello", expected="False"), *recording("once", service))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "2 exchanges recorded in recorded/test_it/test_it",
            "  the test did not pass while it was recorded",
            '  to record it all again: pytest "test_it.py::test_it" --mockllm-record=all',
        ]
    )
    assert len(files(project)) == 4
    run(both("Hello")).assert_outcomes(passed=1)
    assert len(service.requests) == 2


def test_a_unittest_method_is_recorded(run, service):
    """A unittest method is recorded, and its failure has the command to record it."""
    text = """
    import unittest

    import pytest
    from client import message, post, user

    @pytest.mark.mockllm_recorded
    class TestIt(unittest.TestCase):
        def test_it(self):
            assert message(post(user("Hello")))["content"] == {expected!r}
    """
    result = run(text.format(expected="answer 1"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["Nothing is recorded. To record it: pytest *TestIt::test_it*"])
    result = run(text.format(expected="another"), *recording("once", service))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["  the test did not pass while it was recorded"])
    run(text.format(expected="answer 1")).assert_outcomes(passed=1)


def test_the_same_question_twice_is_replayed_in_order(run, service):
    """Equal requests get their answers in the recorded order, also in longer conversations."""
    text = """
    import pytest
    from client import message, post, user

    @pytest.mark.mockllm_recorded
    def test_it(mockllm_session):
        replies = []
        for _ in range(3):
            first = message(post(user("Roll a die")))
            replies.append(first["content"])
            again = message(post(user("Roll a die"), first, user("Again")))
            replies.append(again["content"])
        print("replies:", [reply.removeprefix("answer ") for reply in replies])
    """
    expected = ["*replies: [[]'1', '2', '3', '4', '5', '6']"]
    result = run(text, "-s", *recording("once", service))
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(expected)
    result = run(text, "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(expected)


def test_a_recorded_exchange_is_replayed_once(run, service):
    """A replay with more requests than were recorded fails, and shows how to record it again; the
    marker allows it."""
    text = """
    import pytest
    from client import message, post, user

    @pytest.mark.mockllm_recorded
    {marker}
    def test_it():
        assert {{message(post(user("Roll a die")))["content"] for _ in range({count})}}
    """
    run(text.format(marker="", count=2), *recording("once", service)).assert_outcomes(passed=1)
    run(text.format(marker="", count=2)).assert_outcomes(passed=1)
    result = run(text.format(marker="", count=4))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "mockllm: extra-request, request 3: *",
            "Also: extra-request, request 4: *",
            "To record it all again: pytest *",
            "To allow it: @pytest.mark.mockllm(extra_requests=True)",
        ]
    )
    allowed = "@pytest.mark.mockllm(extra_requests=True)"
    run(text.format(marker=allowed, count=4)).assert_outcomes(passed=1)


def test_shared_turns_and_given_turns_need_not_be_played(run, service):
    """A turn that two conversations share is played once, and a turn in the history of the
    first request was never requested: neither counts as unplayed."""
    text = """
    import pytest
    from client import message, post, user

    CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

    @pytest.mark.mockllm_recorded
    def test_branches():
        first = message(post(user("Hello")))
        for text in ("left", "right"):
            assert post(user("Hello"), first, user(text)).status_code == 200

    @pytest.mark.mockllm_recorded
    def test_given_history():
        history = [
            user("Look"),
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": "A wall."},
        ]
        assert post(*history).status_code == 200
    """
    run(text, *recording("once", service)).assert_outcomes(passed=2)
    run(text).assert_outcomes(passed=2)


KINDS = """
    import pytest
    from client import reply_to

    pytestmark = pytest.mark.mockllm_recorded

    @pytest.mark.parametrize("text", ["a/b", "a-b", "A-b"])
    def test_each(text):
        assert reply_to("Hello " + text)

    class TestGroup:
        def test_each(self):
            assert reply_to("Hello")
"""


def test_every_test_has_its_own_recording(project, run, service):
    """Parametrised tests and methods have separate folders, with pytest-xdist as well."""
    result = run(KINDS, "-n2", *recording("once", service))
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*= mockllm recordings =*", "test_it.py::TestGroup::test_each"])
    folders = sorted({str(Path(name).parent) for name in files(project)})
    assert [re.sub("-[0-9a-f]{8}$", "-#", name) for name in folders] == [
        "test_it/TestGroup.test_each",
        "test_it/test_each-A-b-#",
        "test_it/test_each-a-b",
        "test_it/test_each-a-b-#",
    ]
    assert len(service.requests) == 4
    run(KINDS).assert_outcomes(passed=4)


def test_an_asynchronous_test_is_recorded(project, run, service):
    """Five requests at once in an async test are recorded and replayed."""
    text = """
    import asyncio

    import openai
    import pytest

    @pytest.mark.asyncio
    @pytest.mark.mockllm_recorded
    async def test_it():
        async with openai.AsyncOpenAI(max_retries=0, timeout=60) as client:
            answers = await asyncio.gather(
                *[
                    client.chat.completions.create(
                        model="gpt-4o", messages=[{"role": "user", "content": f"Hello {n}"}]
                    )
                    for n in range(5)
                ]
            )
        assert len({one.choices[0].message.content for one in answers}) == 5
    """
    run(text, *recording("once", service)).assert_outcomes(passed=1)
    assert len(files(project)) == 10
    run(text).assert_outcomes(passed=1)
    assert len(service.requests) == 5


def test_a_half_read_answer_is_recorded_and_replayed(project, run):
    """A stream that is open when the test ends is cut, recorded and replayed."""

    async def endless(request, wire):
        await wire.head(EVENTS, "Transfer-Encoding: chunked")
        for event in text_events("one", "two")[:1]:
            await wire.chunk(event)
        await wire.closed_by_peer()

    text = """
    import os

    import httpx
    import pytest

    LEFT_OPEN = []

    @pytest.mark.mockllm_recorded
    def test_it():
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
        client = httpx.Client(timeout=60)
        url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
        request = client.build_request("POST", url + "/chat/completions", json=body)
        answer = client.send(request, stream=True)
        LEFT_OPEN.append((client, answer))
        assert "one" in next(answer.iter_lines())

    def test_close():
        for client, answer in LEFT_OPEN:
            answer.close()
            client.close()
    """
    with OddUpstream(endless) as service:
        result = run(text, *recording("once", service))
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*turn 1 of hello; *cut by the client"])
    assert files(project) == ["test_it/test_it/hello.1.jsonl", "test_it/test_it/hello.yaml"]
    run(text).assert_outcomes(passed=2)


def asking(system):
    """A test with a system prompt, and one that never changes."""
    return f"""
    import openai
    import pytest

    def ask(system):
        with openai.OpenAI(max_retries=0, timeout=60) as client:
            contents = {{"system": system, "user": "Hi"}}
            messages = [{{"role": role, "content": text}} for role, text in contents.items()]
            answer = client.chat.completions.create(model="gpt-4o", messages=messages)
            return answer.choices[0].message.content

    @pytest.mark.mockllm_recorded
    def test_changes(mockllm_session):
        print("answer:", ask({system!r}))

    @pytest.mark.mockllm_recorded
    def test_stays(mockllm_session):
        assert ask("Be kind.").startswith("answer")
    """


def test_a_recorded_test_with_another_prompt(project, run, service):
    """It passes with its differences in the summary, and fails where that is required; `changed`
    records it anew, and no other test."""
    with_cache = ("-o", "addopts=-p no:langsmith_plugin -p no:randomly -p no:hypothesispytest")
    run(asking("Be kind."), *recording("once", service)).assert_outcomes(passed=2)
    result = run(asking("Be evil."), *with_cache, "--junitxml=it.xml")
    result.assert_outcomes(passed=2)
    cases = ET.parse(project.path / "it.xml").iter("testcase")
    properties = {case.get("name"): case.findall(".//property") for case in cases}
    (changed,) = properties["test_changes"]
    assert changed.get("name") == "request-unchanged"
    assert 'messages[0].content: "Be kind." → "Be evil."' in str(changed.get("value"))
    assert properties["test_stays"] == []
    result.stdout.fnmatch_lines(
        [
            "*= mockllm: recordings that answered other requests =*",
            "1 recorded test sent another request than was recorded:",
            '*test_changes: request 1: *messages[[]0].content: "Be kind." → "Be evil."*',
            "They fail with --mockllm-require request-unchanged; *",
        ]
    )
    result = run(asking("Be evil."), *with_cache, "--mockllm-require", "request-unchanged")
    result.assert_outcomes(passed=1, failed=1)
    count = len(service.requests)
    result = run(asking("Be evil."), *with_cache, "-s", *recording("changed", service))
    result.assert_outcomes(passed=2)
    assert len(service.requests) == count + 1
    result = run(asking("Be evil."), *with_cache, "-s", "--mockllm-require", "request-unchanged")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"*answer: answer {count + 1}*"])
    result.stdout.no_fnmatch_line("*other requests*")


def test_stale_recordings_are_recorded_anew(project, run, service):
    """Those older than they may be; the age has to be given."""
    run(both("Hello"), *recording("once", service)).assert_outcomes(passed=1)
    fresh = recording("stale", service)
    run(both("Hello"), *fresh, "--mockllm-max-age=1d").assert_outcomes(passed=1)
    assert len(service.requests) == 2
    for tape in (project.path / "recorded").rglob("*.jsonl"):
        tape.write_text(re.sub('"at":"[0-9]{4}', '"at":"2001', tape.read_text("utf-8")), "utf-8")
    run(both("Hello"), *fresh, "--mockllm-max-age=1d").assert_outcomes(passed=1)
    assert len(service.requests) == 4
    result = run(both("Hello"), *fresh)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*--mockllm-record=stale needs --mockllm-max-age*"])
