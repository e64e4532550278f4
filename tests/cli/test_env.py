"""`mockllm env`, and what a protocol cannot say."""

from mockllm.protocols import PROTOCOLS
from mockllm.replay.losses import lost
from mockllm.replay.loading import loads


def test_variables_are_printed_for_a_dotenv_file(mockllm):
    """Every SDK's base URL and a key, one a line."""
    lines = mockllm("env", "--url", "http://127.0.0.1:9000/").stdout.splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    assert variables["OPENAI_BASE_URL"] == "http://127.0.0.1:9000/v1"
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9000"
    assert variables["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:9000"
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"} <= variables.keys()


def test_a_session_is_part_of_the_base_urls(mockllm):
    """For a shell, each line is an export."""
    lines = mockllm("env", "--export", "--session", "mine").stdout.splitlines()
    assert "export OPENAI_BASE_URL=http://127.0.0.1:8080/s/mine/v1" in lines
    assert mockllm("env", "--session", "a/b").exit_code == 2
    assert mockllm("env", "--url", "127.0.0.1").exit_code == 2


def told(text):
    return [str(loss) for loss in lost(loads(text)[0], PROTOCOLS)]


def test_losses_are_told_turn_by_turn():
    """What a protocol cannot say is in words, and only where it happens."""
    found = told("""
        scenario: s
        turns:
          - reply: {text: plain}
          - reply: {tool: f, id: call_1, arguments: {a: 1}, split: 2}
    """)
    assert [line for line in found if " over agui" not in line] == [
        "s: turn 2 over gemini: ids of calls are not sent; arguments are sent whole"
    ]


def test_apis_make_losses_explicit():
    """A scenario that leaves a protocol out loses nothing there."""
    text = "scenario: s\napis: [{}]\nturns: [{{reply: {{refusal: I would rather not.}}}}]"
    assert told(text.format("chat")) == []
    assert "refusal" in told(text.format("gemini"))[0]


def test_validate_tells_losses_when_asked(mockllm, shipped):
    """They are no problems: the exit code stays 0."""
    plain = mockllm("validate", str(shipped))
    asked = mockllm("validate", "--losses", str(shipped))
    assert (plain.exit_code, asked.exit_code) == (0, 0)
    assert "over gemini" in asked.stdout
    assert "over gemini" not in plain.stdout
