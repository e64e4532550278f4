"""What answers a test: its replies and scenarios, by their `match`, and nothing else."""

from __future__ import annotations

import pytest

import tests.plugin.test_recorded  # noqa: F401 - imports once what its runs need

GREETINGS = "--mockllm-scenarios=greetings.yaml"


def test_a_bare_session_answers_nothing(run):
    """A request without a reply fails the test even where the client's error is caught; the
    client's error and the report show the reply to write."""
    result = run(
        """
        from client import post, user

        def test_it(mockllm_session):
            answer = post(user("Plan a trip"))
            assert answer.status_code == 404
            message = answer.json()["error"]["message"]
            assert 'mockllm_session.reply("...")' in message
            assert 'mockllm_session.use("auto")' in message
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "mockllm: request 1 matches nothing: Nothing in this test answers the request "
            "(model 'any', user message 'Plan a trip').",
            "     -> 404, nothing answers it, * bytes",
            '          mockllm_session.reply("...")',
            '          mockllm_session.use("auto")',
            "To allow it: @pytest.mark.mockllm(unmatched=True)",
        ]
    )


def test_scenarios_of_the_run_answer_only_by_name(run):
    """A scenario of `--mockllm-scenarios` whose `match` holds does not answer; the message shows
    how to name it."""
    result = run(
        """
        from client import post, user

        def test_it(mockllm_session):
            assert post(user("hello")).status_code == 404

        def test_named(mockllm_session):
            mockllm_session.use("greeting")
            assert post(user("hello")).status_code == 200
        """,
        GREETINGS,
    )
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(['*mockllm_session.use("greeting")'])


def test_a_request_may_name_a_scenario(run):
    """The model `mock/NAME` and the header play a scenario of the run, also beside a reply."""
    run(
        """
        from client import message, post, reply_to, user
        import httpx
        import pytest

        def test_model(mockllm_session):
            answer = httpx.post(
                mockllm_session.openai_url + "/chat/completions",
                json={"model": "mock/greeting", "messages": [user("x")]},
                headers={"authorization": "Bearer x"},
            )
            assert message(answer)["content"] == "Hi there."

        @pytest.mark.mockllm(unplayed=True)
        def test_header(mockllm_session):
            mockllm_session.reply("Mine.")
            answer = httpx.post(
                mockllm_session.openai_url + "/chat/completions",
                json={"model": "m", "messages": [user("x")]},
                headers={"authorization": "Bearer x", "x-mockllm-scenario": "unicode"},
            )
            assert answer.status_code == 200
            assert mockllm_session.journal[0].scenario == "unicode"
            assert reply_to("x") == "Mine."
        """,
        GREETINGS,
    ).assert_outcomes(passed=2)


def test_the_suggested_lines_answer_the_request(project):
    """Each suggested line, written into the test, makes it pass, whatever the tool's schema."""
    text = """
        from client import post, user
        from mockllm_pytest import tool
        import pytest

        FUNCTION = {{
            "name": "book",
            "parameters": {{
                "type": "object",
                "properties": {{"city": {{"type": "string"}}, "now": {{"type": "boolean"}}}},
                "required": ["city", "now"],
            }},
        }}

        def test_it(mockllm_session):
            {line}
            tools = [{{"type": "function", "function": FUNCTION}}]
            assert post(user("hello"), tools=tools).status_code == 200
    """
    project.makepyfile(test_it=text.format(line="pass"))
    result = project.runpytest_inprocess(GREETINGS)
    lines = [line.strip() for line in result.outlines if line.startswith("          mockllm_")]
    assert any("tool(" in line for line in lines)
    assert any('use("greeting")' in line for line in lines)
    for line in lines:
        project.makepyfile(test_it=text.format(line=line))
        project.runpytest_inprocess(GREETINGS).assert_outcomes(passed=1)


def test_match_counts_for_a_single_scenario(run):
    """One scenario answers only what meets its `match`; `match=False` is the opt-out."""
    result = run(
        """
        import pytest
        from client import post, reply_to, user

        def test_other_text(mockllm_session):
            mockllm_session.use("greeting")
            assert post(user("good morning")).status_code == 404

        def test_use(mockllm_session):
            mockllm_session.use("greeting", match=False)
            assert reply_to("good morning") == "Hi there."

        @pytest.mark.mockllm("greeting", match=False)
        def test_marker():
            assert reply_to("good morning") == "Hi there."

        def test_beside_another(mockllm_session):
            mockllm_session.use("farewell")
            mockllm_session.use("greeting", match=False)
            assert reply_to("good bye") == "See you."
            assert reply_to("good morning") == "Hi there."

        def test_beside_a_reply(mockllm_session):
            mockllm_session.use("farewell")
            mockllm_session.reply("Mine.")
            assert reply_to("good bye") == "See you."
            assert reply_to("good morning") == "Mine."

        def test_without_match(mockllm_session):
            mockllm_session.add("{scenario: a, turns: [{reply: {text: A}}]}")
            assert reply_to("anything") == "A"
        """,
        GREETINGS,
    )
    result.assert_outcomes(failed=1, passed=5)
    result.stdout.fnmatch_lines(
        [
            "mockllm: request 1 matches nothing: *",
            "        - greeting: match.user: the last user message must contain 'hello', got *",
            '          mockllm_session.use("greeting", match=False)',
        ]
    )


def test_match_false_with_two_scenarios_is_an_error(run):
    """Two scenarios that would answer the same requests, and a marker that names no scenario."""
    result = run(
        """
        import pytest

        def test_file(mockllm_session):
            mockllm_session.use("greetings.yaml", match=False)

        @pytest.mark.mockllm(match=False)
        def test_marker():
            pass
        """
    )
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*match=False concerns the scenarios that the marker names, and it names none: *",
            "*UsageError: greeting and farewell would answer the same requests: *",
        ]
    )


def test_a_wrong_history_of_a_single_scenario_is_named(run):
    """Where the `match` of the only scenario holds, a tool call with another id gets its turn,
    and the verdict names the mistake, not a request that matches nothing."""
    result = run(
        """
        import copy
        from client import message, post, results, user

        def test_it(mockllm_session):
            mockllm_session.add('''
                scenario: numbers
                match: {user: number}
                turns:
                  - reply: {tool: f, id: call_1}
                  - reply: {text: Done.}
            ''')
            question = user("Which number?")
            call_message = message(post(question))
            call_message["tool_calls"][0]["id"] = "call_2"
            last = post(question, *results(call_message, "1"))
            assert message(last)["content"] == "Done."
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["mockllm: history-faithful, request 2: *"])
    result.stdout.no_fnmatch_line("*matches nothing*")


def test_each_answer_is_given_once(run):
    """A second request for a reply is refused, and one for an answer of a file fails the test,
    unless the turn repeats or the test allows it."""
    result = run(
        """
        import pytest
        from client import post, reply_to, user

        def test_other_questions(mockllm_session):
            mockllm_session.use("greeting")
            assert {reply_to("hello"), reply_to("hello you"), reply_to("hello!")} == {"Hi there."}

        def test_no_reply_left(mockllm_session):
            mockllm_session.reply("Hello.")
            assert reply_to("Who?") == "Hello."
            assert post(user("Who?")).status_code == 404

        def test_same_question(mockllm_session):
            mockllm_session.use("greeting")
            assert reply_to("hello") == reply_to("hello")

        def test_repeat(mockllm_session):
            mockllm_session.reply("Hello.", repeat=True)
            assert reply_to("Who?") == reply_to("What?")

        @pytest.mark.mockllm(extra_requests=True)
        def test_allowed(mockllm_session):
            mockllm_session.reply("Hello.")
            assert reply_to("Who?") == reply_to("What?")

        @pytest.mark.mockllm(violations=["extra-request"])
        def test_allowed_by_name(mockllm_session):
            mockllm_session.reply("Hello.")
            assert reply_to("Who?") == reply_to("What?")

        def test_verify(mockllm_session):
            mockllm_session.use("greeting")
            assert reply_to("hello") == reply_to("hello you")
            with pytest.raises(AssertionError, match="extra-request"):
                mockllm_session.verify()
            mockllm_session.verify(extra_requests=True)
        """,
        GREETINGS,
    )
    result.assert_outcomes(failed=4, passed=3)
    result.stdout.fnmatch_lines(
        [
            "*_ test_other_questions _*",
            "mockllm: extra-request, request 2: *with another body*",
            "Also: extra-request, request 3: *",
            "To allow it: @pytest.mark.mockllm(extra_requests=True)",
            "*_ test_no_reply_left _*",
            "mockllm: request 2 matches nothing: The only turn of scenario * was given. *",
            "*_ test_same_question _*",
            "mockllm: extra-request, request 2: *with the same body*",
        ]
    )


def test_replies_to_several_questions(run):
    """A reply with `match` begins a conversation of its own, which later replies continue; without
    one that answers any request, every other question is refused."""
    result = run(
        """
        from client import message, post, reply_to, user

        def test_beside_any(mockllm_session):
            mockllm_session.reply("Any.")
            mockllm_session.reply("Rain.", match={"user": "weather"})
            mockllm_session.reply("Cold, too.")
            assert reply_to("What time is it?") == "Any."
            question = user("How is the weather?")
            first = message(post(question))
            assert first["content"] == "Rain."
            assert message(post(question, first, user("And?")))["content"] == "Cold, too."

        def test_only(mockllm_session):
            mockllm_session.reply("Rain.", match={"user": "weather"})
            assert reply_to("How is the weather?") == "Rain."
            assert post(user("What time is it?")).status_code == 404
        """
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "mockllm: request 2 matches nothing: *",
            "*- replies-of-*: match.user*",
            '*mockllm_session.reply("...", match={"user": "What time is it?"})',
        ]
    )


def test_a_conversation_past_its_last_reply(run):
    """A request for a turn that is not written fails, and the message shows how to write it."""
    result = run(
        """
        from client import message, post, user

        def test_it(mockllm_session):
            mockllm_session.reply("Hi.")
            first = message(post(user("Hello")))
            answer = post(user("Hello"), first, user("More"))
            assert answer.status_code == 404
            assert "mockllm_session.reply(...)" in answer.json()["error"]["message"]
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*For a further turn: mockllm_session.reply(...)"])


@pytest.mark.slow
def test_retries_are_not_extra_requests(run):
    """The SDK retries after an error, and a test after a cut stream and a time-out: the answer of
    the last attempt is no extra request."""
    run(
        """
        import openai
        import pytest
        from mockllm_pytest import pause

        QUESTION = [{"role": "user", "content": "Hello"}]

        def ask(**options):
            with openai.OpenAI(**options) as client:
                with client.chat.completions.stream(model="m", messages=QUESTION) as stream:
                    return stream.get_final_completion().choices[0].message.content

        def test_error(mockllm_session):
            mockllm_session.reply(
                "Hi", attempts=[{"http": 429, "retry_after": "1ms"}, {"http": 503}]
            )
            assert ask() == "Hi"
            assert [one.status for one in mockllm_session.journal] == [429, 503, 200]

        def test_lasting_error(mockllm_session):
            mockllm_session.reply(http={"status": 503, "headers": {"retry-after-ms": "1"}})
            with pytest.raises(openai.InternalServerError):
                ask()
            assert [one.status for one in mockllm_session.journal] == [503, 503, 503]

        def test_cut(mockllm_session):
            mockllm_session.reply("Hello there")
            mockllm_session.quirks = "sse-cut:reset"
            with pytest.raises(Exception) as found:
                ask()
            assert "Remote" in type(found.value).__name__ or "API" in type(found.value).__name__
            mockllm_session.quirks = ()
            assert ask() == "Hello there"

        def test_time_out(mockllm_session):
            mockllm_session.reply("a", pause("10m"), "b", repeat=False)
            with pytest.raises(Exception, match="[Tt]imed out"):
                ask(timeout=0.2, max_retries=0)
            with pytest.raises(Exception, match="[Tt]imed out"):
                ask(timeout=0.2, max_retries=0)
        """
    ).assert_outcomes(passed=4)
