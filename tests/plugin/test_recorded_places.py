"""The folder of a recording, and the options and markers that configure it."""

from __future__ import annotations

import re

import pytest

import mockllm_pytest.recording  # noqa: F401 - imported once, see conftest
from mockllm.wire.protocols.environment import MOCK_KEY, client_environment
from mockllm_pytest.recording import recording_folder
from tests.plugin.conftest import INI
from tests.serve.server.recording.odd_upstream import OddUpstream

BASES = {"chat": "http://a/v1", "anthropic": "http://a", "gemini": "http://a"}

MARKED = """
    import pytest
    from client import post, user

    @pytest.mark.mockllm_recorded{arguments}
    def test_it(mockllm_session):
        {body}
"""


def folders(project, names):
    """The folders of a parametrised test, by the ids of its parameters."""
    items = project.getitems(
        f"""
        import pytest

        @pytest.mark.parametrize("one", range({len(names)}), ids={names!r})
        def test_it(one):
            pass
        """
    )
    return [recording_folder(item) for item in items]


def test_a_recording_is_beside_the_module_of_its_test(project):
    """The folder is `recorded/MODULE/TEST` beside the module, with the classes in the name."""
    (item,) = project.getitems(
        """
        class TestThis:
            class TestThat:
                def test_it(self):
                    pass
        """
    )
    folder = item.path.parent / "recorded" / item.path.stem
    assert recording_folder(item) == folder / "TestThis.TestThat.test_it"


def test_the_parameters_of_a_test_are_in_the_name(project):
    """The folder has the id of the parameters as pytest writes it, without brackets."""
    plain = folders(project, ["gpt-4o", "1.5", "a_b"])
    assert [one.name for one in plain] == ["test_it-gpt-4o", "test_it-1.5", "test_it-a_b"]


def test_folder_names_are_safe_and_unique_on_every_file_system(project):
    """Special characters are replaced. A checksum separates names that are then equal, or that
    differ in upper and lower case alone."""
    names = ["x/y", "x-y", "x\\\\y", "X-y", "..", "a" * 200, "a" * 201, "a b", "a:b", "ü", "x-y."]
    found = [folder.name for folder in folders(project, names)]
    assert len({name.lower() for name in found}) == len(names)
    assert found[1] == "test_it-x-y"
    for name in found:
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,120}", name)
        assert not name.endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ('("hello")', "takes keyword arguments only, got 'hello'"),
        ('(mode="often")', "mode 'often' is none of none, once, new_episodes, all"),
        ('(match="words")', "match 'words' is none of user, system, model, tools"),
        ('(modus="once")', "has no argument 'modus'; did you mean 'mode'?"),
        ('(mode="all", upstream="nowhere")', "needs a base URL such as https://api.openai.com"),
    ],
)
def test_a_wrong_marker_is_an_error(run, arguments, message):
    """The test does not begin, and the message names the allowed values."""
    result = run(MARKED.format(arguments=arguments, body="pass"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{message}*"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("mockllm_session.reply('a')", ""),
        ("mockllm_session.use('tick-tock')", ""),
        ("mockllm_session.add({'scenario': 'a', 'turns': [{'reply': {'text': 'a'}}]})", ""),
        ("pass", "\n    @pytest.mark.mockllm('tick-tock')"),
    ],
)
def test_a_recorded_test_is_answered_by_its_recording_alone(run, body, more):
    """Scenarios and replies are refused, since they could answer in place of the recording."""
    result = run(MARKED.format(arguments=more, body=body))
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*marked mockllm_recorded is answered by its recording alone*"])


@pytest.mark.slow
def test_a_wrong_mode_is_an_error(project, run):
    """A wrong mode on the command line or in the ini file is an error with the known modes."""
    text = MARKED.format(arguments="", body="pass")
    result = run(text, "--mockllm-record=often")
    assert "'often' is none of none, once, new_episodes, all" in result.stderr.str()
    project.makeini(f"{INI}    mockllm_record = often\n")
    result = run(text)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["ini option mockllm_record: 'often' is none of*"])


@pytest.mark.slow
def test_the_precedence_of_upstreams(project, run, monkeypatch):
    """Command line, marker, environment, ini; each may name the service for one API alone."""
    body = """
        for path in ("chat/completions", "responses"):
            import httpx
            import os
            url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
            httpx.post(url + "/" + path, json={"model": "m"}, timeout=60)
    """
    received = []

    async def answer(request, wire):
        received.append((wire.writer.get_extra_info("sockname")[1], request.target))
        await wire.body("{}", status="404 Not Found")

    def services_that_answered(arguments, *given):
        received.clear()
        run(MARKED.format(arguments=arguments, body=body), "--mockllm-record=all", *given)
        by_port = {int(one.url.rpartition(":")[2]): name for name, one in running.items()}
        return [by_port[port] for port, _ in received]

    with (
        OddUpstream(answer) as ini,
        OddUpstream(answer) as environment,
        OddUpstream(answer) as marker,
        OddUpstream(answer) as line,
    ):
        running = {"ini": ini, "environment": environment, "marker": marker, "line": line}
        project.makeini(f"{INI}    mockllm_upstream =\n        openai={ini.url}\n")
        assert services_that_answered("") == ["ini", "ini"]
        monkeypatch.setenv("MOCKLLM_UPSTREAM_OPENAI", environment.url)
        assert services_that_answered("") == ["environment", "environment"]
        marked = f'(upstream="chat={marker.url}")'
        assert services_that_answered(marked) == ["marker", "environment"]
        assert services_that_answered(marked, f"--mockllm-upstream=responses={line.url}") == [
            "marker",
            "line",
        ]


def test_a_client_keeps_its_own_credentials():
    """Where the client has a key for an API, mockllm sets none for that API."""
    alone = client_environment(BASES)
    assert {alone[name] for name in alone if name.endswith("KEY")} == {MOCK_KEY}
    own = {"GEMINI_API_KEY": "a", "ANTHROPIC_AUTH_TOKEN": "b", "OPENAI_API_KEY": ""}
    given = client_environment(BASES, own)
    assert given["OPENAI_API_KEY"] == MOCK_KEY
    keys = {"GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"}
    assert not keys & given.keys()
    assert given.keys() | keys == alone.keys()
    assert client_environment(BASES, {"OPENAI_API_KEY": MOCK_KEY}) == alone


@pytest.mark.slow
def test_other_tests_are_not_recorded(project, run):
    """`--mockllm-record` changes nothing for tests without the marker."""
    result = run(
        """
        import os
        from client import reply_to

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            assert reply_to("Hello") == "Hi"
            assert os.environ["OPENAI_API_KEY"] == "mock-key"
        """,
        "--mockllm-record=all",
        "--mockllm-upstream=http://127.0.0.1:9",
    )
    result.assert_outcomes(passed=1)
    assert not (project.path / "recorded").exists()


@pytest.mark.slow
def test_the_match_argument_decides_what_a_recording_matches(project, run, monkeypatch):
    """`match` names the parts of a request that a replay compares."""

    async def answer(request, wire):
        await wire.body('{"error": {"message": "no", "type": "a", "code": "b", "param": null}}',
                        "Content-Type: application/json", status="400 Bad Request")  # fmt: skip

    with OddUpstream(answer) as service:
        text = MARKED.format(
            arguments='(match=["user", "model"])', body="post(user('Hello'), model='one')"
        )
        given = ("--mockllm-record=once", "--mockllm-upstream", service.url)
        run(text, *given).assert_outcomes(passed=1)
    run(text).assert_outcomes(passed=1)
    result = run(text.replace("model='one'", "model='two'"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*match.model*"])
