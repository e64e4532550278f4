"""`mockllm_session`: the session of one test, its variables, attributes and methods."""

from __future__ import annotations


def test_the_environment_has_urls_and_keys(run):
    """Base URLs are in the environment, the same in all tests, and in attributes of the session."""
    run(
        """
        import os

        def test_it(mockllm_session, mockllm_server):
            running = mockllm_server.url + "/s/running-test"
            for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
                assert os.environ[name].startswith(running)
            for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
                assert os.environ[name]
            assert os.environ["MOCKLLM_URL"] == running
            assert mockllm_session.session in mockllm_session.url

        def test_attributes(mockllm_session):
            url = mockllm_session.url
            assert mockllm_session.openai_url == url + "/v1"
            assert mockllm_session.anthropic_url == url
            assert mockllm_session.gemini_url == url
            assert mockllm_session.agui_url() == url + "/agui"
            assert mockllm_session.agui_url("tick-tock") == url + "/agui/tick-tock"
        """,
        "--mockllm-no-requests",
    ).assert_outcomes(passed=2)


def test_the_environment_is_restored(run):
    """After the test the variables have their old values."""
    run(
        """
        import os

        def test_one(mockllm_session):
            assert "OPENAI_BASE_URL" in os.environ

        def test_other():
            assert "MOCKLLM_URL" not in os.environ
        """,
        "--mockllm-no-requests",
    ).assert_outcomes(passed=2)


def test_a_proxy_is_bypassed(run, monkeypatch):
    """With HTTP_PROXY set, requests to the server bypass the proxy."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "example.org")
    run(
        """
        import os
        from client import reply_to

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            assert reply_to("Hello") == "Hi"
            assert os.environ["no_proxy"].startswith("example.org,")
        """
    ).assert_outcomes(passed=1)


def test_each_test_has_its_own_session(run):
    """Each test has its own session, with its own name and journal."""
    run(
        """
        import pytest
        from client import reply_to

        NAMES = set()

        @pytest.mark.parametrize("text", ["one", "two"])
        def test_it(mockllm_session, text):
            mockllm_session.reply(text)
            assert reply_to("Hello") == text
            (exchange,) = mockllm_session.journal
            assert exchange.outcome == "played"
            assert "test_it" in mockllm_session.session
            assert mockllm_session.session not in NAMES
            NAMES.add(mockllm_session.session)
        """
    ).assert_outcomes(passed=2)


def test_a_session_is_removed_after_its_test(run):
    """The session of a test is removed from the server at its end."""
    run(
        """
        from client import reply_to

        def test_one(mockllm_session, mockllm_server):
            mockllm_session.reply("Hi")
            reply_to("Hello")
            assert mockllm_server.base_urls["chat"] == mockllm_server.url + "/v1"

        def test_other(mockllm_server):
            thread = mockllm_server.thread
            assert thread.ask(lambda: len(thread.server.sessions)) == 0
        """
    ).assert_outcomes(passed=2)


def test_the_journal_has_what_was_requested(run):
    """As JSON, and as messages and tools in one form for all APIs."""
    run(
        """
        from client import post, user

        def test_it(mockllm_session):
            mockllm_session.reply("Hi")
            tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
            post({"role": "system", "content": "Be brief."}, user("hello"), tools=[tool])
            (exchange,) = mockllm_session.journal
            assert exchange.json["messages"][1] == user("hello")
            assert [(m.role, m.text) for m in exchange.messages] == [
                ("system", "Be brief."), ("user", "hello")
            ]
            assert [tool.name for tool in exchange.tools] == ["f"]
        """
    ).assert_outcomes(passed=1)


def test_scenarios_answer_by_their_match(run):
    """Scenarios are used by name or path, and each answers what meets its `match`."""
    run(
        """
        from client import reply_to

        def test_one(mockllm_session):
            (scenario,) = mockllm_session.use("farewell")
            assert scenario.name == "farewell"
            assert reply_to("good bye") == "See you."

        def test_two(mockllm_session):
            mockllm_session.use("farewell", "greeting")
            assert reply_to("hello") == "Hi there."
            assert reply_to("bye") == "See you."

        def test_path(mockllm_session):
            assert len(mockllm_session.use("greetings.yaml")) == 2
            assert [reply_to("hello"), reply_to("bye")] == ["Hi there.", "See you."]
        """,
        "--mockllm-scenarios=greetings.yaml",
    ).assert_outcomes(passed=3)


def test_a_scenario_can_be_written_in_the_test(run):
    """`add` accepts YAML text and mappings, and its error lists all problems."""
    run(
        """
        import pytest
        from client import reply_to
        from mockllm import ScenarioError

        def test_text(mockllm_session):
            mockllm_session.add("{scenario: a, turns: [{reply: {text: A}}]}")
            assert reply_to("Hello") == "A"

        def test_mapping(mockllm_session):
            text = 'A "quoted" \\u2028 \\U0001f600 \\x85 text'
            mockllm_session.add({"scenario": "a", "turns": [{"reply": {"text": text}}]})
            assert reply_to("Hello") == text

        @pytest.mark.mockllm(no_requests=True)
        def test_wrong(mockllm_session):
            with pytest.raises(ScenarioError) as found:
                mockllm_session.add({"scenario": "A", "turns": [{"reply": {"txt": "a"}}]})
            assert len(found.value.problems) == 2
            assert "turns[0].reply" in str(found.value)

        def test_twice(mockllm_session):
            mockllm_session.add({"scenario": "a", "turns": [{"reply": {"text": "a"}}]})
            with pytest.raises(Exception, match="has a scenario 'a' already"):
                mockllm_session.add({"scenario": "a", "turns": [{"reply": {"text": "b"}}]})
            reply_to("Hello")
        """
    ).assert_outcomes(passed=4)


def test_quirks_are_played(run):
    """The quirks of a session change all its streams."""
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
            mockllm_session.reply("Hi", repeat=True)
            assert "\\r" not in body()
            mockllm_session.quirks = ["sse-crlf"]
            assert "\\r\\n\\r\\n" in body()

        @pytest.mark.mockllm("greeting", quirks=["sse-crlf"])
        def test_marker():
            assert "\\r\\n\\r\\n" in body()

        @pytest.mark.mockllm(no_requests=True)
        def test_typo(mockllm_session):
            with pytest.raises(Exception, match="did you mean 'sse-crlf'"):
                mockllm_session.quirks = "sse-clrf"
        """,
        "--mockllm-scenarios=greetings.yaml",
    ).assert_outcomes(passed=4)


def test_verify_in_the_middle_of_a_test(run):
    """`verify()` in the middle of a test judges the exchanges so far."""
    run(
        """
        import pytest
        from client import reply_to

        def test_it(mockllm_session):
            mockllm_session.reply("one")
            with pytest.raises(AssertionError, match="no request came; does the client read "):
                mockllm_session.verify(unplayed=True)
            mockllm_session.verify(no_requests=True)
            reply_to("Hello")
            mockllm_session.verify()
        """
    ).assert_outcomes(passed=1)
