"""`mockllm env`, and the losses of a protocol."""

from mockllm.play.replay.loading import loads
from mockllm.play.replay.losses import find_losses
from mockllm.wire.protocols import PROTOCOLS


def test_variables_are_printed_for_a_dotenv_file(mockllm):
    """The output has the base URL and a key of every SDK, one a line."""
    lines = mockllm("env", "--url", "http://127.0.0.1:9000/").stdout.splitlines()
    variables = dict(line.split("=", 1) for line in lines)
    assert variables["OPENAI_BASE_URL"] == "http://127.0.0.1:9000/v1"
    assert variables["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9000"
    assert variables["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:9000"
    assert {"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"} <= variables.keys()


def test_a_session_is_part_of_the_base_urls(mockllm):
    """`--session` adds the session to base URLs, and `--export` prints shell exports."""
    lines = mockllm("env", "--export", "--session", "mine").stdout.splitlines()
    assert "export OPENAI_BASE_URL=http://127.0.0.1:8080/s/mine/v1" in lines
    assert mockllm("env", "--session", "a/b").exit_code == 2
    assert mockllm("env", "--url", "127.0.0.1").exit_code == 2


def test_all_addresses_are_no_address(mockllm):
    """The URL of a server that listens on all addresses is given as one that clients can use."""
    lines = mockllm("env", "--url", "http://0.0.0.0:9000/x").stdout.splitlines()
    assert "OPENAI_BASE_URL=http://127.0.0.1:9000/x/v1" in lines
    assert "MOCKLLM_URL=http://[::1]:9000" in mockllm("env", "--url", "http://[::]:9000").stdout
    assert mockllm("env", "--url", "http://0.0.0.0:99999").exit_code == 2


def losses(text):
    return [str(loss) for loss in find_losses(loads(text)[0], PROTOCOLS)]


def test_losses_are_reported_turn_by_turn():
    """A loss names the turn, the API and what is lost; a turn without losses has no line."""
    found = losses("""
        scenario: s
        turns:
          - reply: {text: plain}
          - reply: {tool: f, id: call_1, arguments: {a: 1}, split: 2}
    """)
    assert [line for line in found if " over agui" not in line and " over live" not in line] == [
        "s: turn 2 over gemini: ids of calls are not sent; arguments are sent whole",
        "s: turn 2 over ollama: arguments are sent whole",
        "s: turn 2 over completions: of 1 calls 0 are sent; finish tool_calls reads as stop",
    ]


def test_apis_limit_the_losses():
    """A scenario has losses only over the APIs that it plays over."""
    text = "scenario: s\napis: [{}]\nturns: [{{reply: {{refusal: I would rather not.}}}}]"
    assert losses(text.format("chat")) == []
    assert "refusal" in losses(text.format("gemini"))[0]


def test_validate_prints_losses_on_request(mockllm, shipped):
    """`validate --losses` prints losses, and the exit code is still 0."""
    plain = mockllm("validate", str(shipped))
    with_losses = mockllm("validate", "--losses", str(shipped))
    assert (plain.exit_code, with_losses.exit_code) == (0, 0)
    assert "over gemini" in with_losses.stdout
    assert "over gemini" not in plain.stdout
