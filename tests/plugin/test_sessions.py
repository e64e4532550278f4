"""`mockllm_session`: the server of one test, by its variables and its attributes."""

from __future__ import annotations


def test_the_environment_leads_to_the_session(run):
    """SDKs that read their base URL and key from the environment need nothing else."""
    run(
        """
        import os

        def test_it(mockllm_session):
            for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
                assert os.environ[name].startswith(mockllm_session.url)
            for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
                assert os.environ[name]
            assert os.environ["MOCKLLM_URL"] == mockllm_session.url
            assert mockllm_session.session in mockllm_session.url

        def test_attributes(mockllm_session):
            url = mockllm_session.url
            assert mockllm_session.openai_url == url + "/v1"
            assert mockllm_session.anthropic_url == url
            assert mockllm_session.gemini_url == url
            assert mockllm_session.agui_url() == url + "/agui"
            assert mockllm_session.agui_url("tick-tock") == url + "/agui/tick-tock"
        """
    ).assert_outcomes(passed=2)


def test_the_environment_is_put_back(run):
    """After the test the variables are what they were."""
    run(
        """
        import os

        def test_one(mockllm_session):
            assert "OPENAI_BASE_URL" in os.environ

        def test_other():
            assert "MOCKLLM_URL" not in os.environ
        """
    ).assert_outcomes(passed=2)


def test_a_proxy_does_not_stand_between(run, monkeypatch):
    """Where a proxy is set, requests to the server stay off it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "example.org")
    run(
        """
        import os
        from client import say

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            assert say("Hello") == "Hi"
            assert os.environ["no_proxy"].startswith("example.org,")
        """
    ).assert_outcomes(passed=1)


def test_sessions_are_apart(run):
    """Each test has a session with a name and a journal of its own."""
    run(
        """
        import pytest
        from client import say

        NAMES = set()

        @pytest.mark.parametrize("text", ["one", "two"])
        def test_it(mockllm_session, text):
            mockllm_session.reply(text)
            assert say("Hello") == text
            (exchange,) = mockllm_session.journal
            assert exchange.outcome == "played"
            assert "test_it" in mockllm_session.session
            assert mockllm_session.session not in NAMES
            NAMES.add(mockllm_session.session)
        """
    ).assert_outcomes(passed=2)


def test_the_server_forgets_a_session(run):
    """What a test left behind is gone when it is over."""
    run(
        """
        from client import say

        def test_one(mockllm_session, mockllm_server):
            mockllm_session.reply("Hi")
            say("Hello")
            assert mockllm_server.base_urls["chat"] == mockllm_server.url + "/v1"

        def test_other(mockllm_server):
            thread = mockllm_server.thread()
            assert thread.ask(lambda: len(thread.server.sessions)) == 0
        """
    ).assert_outcomes(passed=2)


def test_without_a_scenario_the_library_answers(run):
    """A session without scenarios of its own is served from all there are."""
    run(
        """
        from client import say

        def test_it(mockllm_session):
            assert say("hello") == "Hi there."
        """,
        "--mockllm-scenarios=greetings.yaml",
    ).assert_outcomes(passed=1)


def test_one_scenario_answers_everything(run):
    """`use` of a single scenario asks no conditions; of several, they match as usual."""
    run(
        """
        from client import say

        def test_one(mockllm_session):
            (scenario,) = mockllm_session.use("farewell")
            assert scenario.name == "farewell"
            assert say("whatever") == "See you."

        def test_two(mockllm_session):
            mockllm_session.use("farewell", "greeting")
            assert say("hello") == "Hi there."
            assert say("bye") == "See you."

        def test_path(mockllm_session):
            assert len(mockllm_session.use("greetings.yaml")) == 2
            assert [say("hello"), say("bye")] == ["Hi there.", "See you."]
        """,
        "--mockllm-scenarios=greetings.yaml",
    ).assert_outcomes(passed=3)


def test_a_scenario_can_be_written_in_the_test(run):
    """`add` takes YAML text and mappings, and tells everything that is wrong with them."""
    run(
        """
        import pytest
        from client import say
        from mockllm import ScenarioError

        def test_text(mockllm_session):
            mockllm_session.add("{scenario: a, turns: [{reply: {text: A}}]}")
            assert say("Hello") == "A"

        def test_mapping(mockllm_session):
            text = 'A "quoted" \\u2028 \\U0001f600 \\x85 text'
            mockllm_session.add({"scenario": "a", "turns": [{"reply": {"text": text}}]})
            assert say("Hello") == text

        def test_wrong(mockllm_session):
            with pytest.raises(ScenarioError) as found:
                mockllm_session.add({"scenario": "A", "turns": [{"reply": {"txt": "a"}}]})
            assert len(found.value.problems) == 2
            assert "turns[0].reply" in str(found.value)

        def test_twice(mockllm_session):
            mockllm_session.add({"scenario": "a", "turns": [{"reply": {"text": "a"}}]})
            with pytest.raises(Exception, match="has a scenario 'a' already"):
                mockllm_session.add({"scenario": "a", "turns": [{"reply": {"text": "b"}}]})
            say("Hello")
        """
    ).assert_outcomes(passed=4)


def test_quirks_are_played(run):
    """A session's quirks change every stream of it."""
    run(
        """
        import pytest
        from client import post, user

        def body():
            return post(user("hello"), stream=True).text

        def test_use(mockllm_session):
            mockllm_session.use("greeting", quirks="sse-crlf")
            assert mockllm_session.quirks == ("sse-crlf",)
            assert "\\r\\n\\r\\n" in body()

        def test_set(mockllm_session):
            assert "\\r" not in body()
            mockllm_session.quirks = ["sse-crlf"]
            assert "\\r\\n\\r\\n" in body()

        @pytest.mark.mockllm("greeting", quirks=["sse-crlf"])
        def test_marker():
            assert "\\r\\n\\r\\n" in body()

        def test_typo(mockllm_session):
            with pytest.raises(Exception, match="did you mean sse-crlf"):
                mockllm_session.quirks = "sse-clrf"
        """,
        "--mockllm-scenarios=greetings.yaml",
    ).assert_outcomes(passed=4)


def test_verify_can_be_asked_in_the_middle(run):
    """`verify()` judges what was asked so far, with the exchanges in its message."""
    run(
        """
        import pytest
        from client import say

        def test_it(mockllm_session):
            mockllm_session.reply("one")
            with pytest.raises(AssertionError, match="no turn of inline was played"):
                mockllm_session.verify()
            mockllm_session.verify(unplayed=True)
            say("Hello")
            mockllm_session.verify()
        """
    ).assert_outcomes(passed=1)
