"""Coding agents are recognised by what they send; their users' words and machines are read."""

import pytest

from mockllm.core.request import Message, Request
from mockllm.play.agents.agent_requests import as_agent_sent
from mockllm.play.agents.known_agents import agent_of, has_failed, known_agents

HEADERS = {
    "claude": "claude-cli/2.1.332 (external, sdk-cli)",
    "codex": "codex_exec/0.171.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.171.0)",
    "gemini": "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)",
    "opencode": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14",
}

CLAUDE = Request(
    "anthropic",
    "claude-opus-5-5",
    {},
    messages=(
        Message(
            "user",
            "<system-reminder>\n# gitStatus\nCurrent branch: main\n\nGit user: Ada\n"
            "</system-reminder>\n<system-reminder>\nCo-Authored-By: noreply@anthropic.com\n"
            "</system-reminder>\n\nwrite hello.txt",
        ),
        Message(
            "system",
            "# Environment\n - Primary working directory: /work/shop\n - Is a git repository: true"
            "\nToday's date is 2026-11-29.",
        ),
    ),
    system="x-anthropic-billing-header: cc_version=2.1.332.42f;\n\nYou have a persistent "
    "file-based memory at `/home/ada/.claude/projects/-work-shop/memory/`.",
)
CODEX = Request(
    "responses",
    "gpt-6",
    {},
    messages=(
        Message("system", "You are a coding agent running in the Codex CLI, a terminal-based"),
        Message("system", "### Skill roots\n- `r0` = `/home/ada/.codex/skills/.system`\n"),
        Message(
            "user",
            "<environment_context>\n  <cwd>/work/shop</cwd>\n  <shell>bash</shell>\n"
            "  <current_date>2026-11-29</current_date>\n</environment_context>",
        ),
        Message("user", "write hello.txt"),
    ),
    system="You are a coding agent running in the Codex CLI, a terminal-based",
)
GEMINI = Request(
    "gemini",
    "gemini-2.5-pro",
    {},
    messages=(
        Message(
            "user",
            "<session_context>\nThis is the Gemini CLI. We are setting up the context.\n"
            "Today's date is Sunday, November 29, 2026 (formatted according to the user's locale)."
            "\nThe project's temporary directory is: /home/ada/.gemini/tmp/shop\n"
            "- **Workspace Directories:**\n  - /work/shop\n- **Directory Structure:**\n\n"
            "/work/shop/\n└───a.txt\n</session_context>write hello.txt",
        ),
    ),
    system="You are a non-interactive CLI agent",
)
OPENCODE = Request(
    "chat",
    "m",
    {},
    messages=(
        Message(
            "system",
            "You are opencode, an interactive CLI tool\n<env>\n  Working directory: /work/shop\n"
            "  Is directory a git repo: yes\n  Today's date: Sun Nov 29 2026\n</env>",
        ),
        Message("user", '"say \\"hi\\" to Ada"'),
    ),
    system="You are opencode, an interactive CLI tool",
)
REQUESTS = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "opencode": OPENCODE}


@pytest.mark.parametrize("name", REQUESTS)
def test_an_agent_is_known_by_its_header_or_by_what_it_says(name):
    by_header = agent_of({"user-agent": HEADERS[name]})
    assert by_header is agent_of({}, REQUESTS[name]) is known_agents()[name]
    assert by_header.version in HEADERS[name]


def test_other_clients_are_no_agents():
    request = Request("chat", "m", {}, messages=(Message("user", "hi"),), system="Be kind.")
    assert agent_of({"user-agent": "OpenAI/Python 3.54.0"}, request) is None
    assert agent_of({}, Request("chat", "m", {})) is None


def test_the_words_of_the_user_are_without_what_the_agent_says():
    own = {
        name: known_agents()[name].own_words(request.last_user.text)
        for name, request in REQUESTS.items()
    }
    assert own == {
        "claude": "write hello.txt",
        "codex": "write hello.txt",
        "gemini": "write hello.txt",
        "opencode": 'say "hi" to Ada',
    }
    assert known_agents()["codex"].own_words(CODEX.users[0].text) == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("claude", " keep my  spaces \n"),
        ("claude", "what does <system-reminder> mean?"),
        ("opencode", '"two" "words"'),
        ("gemini", '"quoted"'),
    ],
)
def test_words_stay_where_the_agent_adds_nothing(name, text):
    assert known_agents()[name].own_words(text) == text


def test_the_machine_is_read_where_the_agent_states_it():
    git = "Current branch: main\n\nGit user: Ada"
    home = {"home": "/home/ada", "user": "ada", "cwd": "/work/shop"}
    day = "Sunday, November 29, 2026"
    worlds = {n: known_agents()[n].surroundings(request) for n, request in REQUESTS.items()}
    assert worlds == {
        "claude": {**home, "date": "2026-11-29", "git": git},
        "codex": {**home, "date": "2026-11-29"},
        "gemini": {**home, "tmp": "/home/ada/.gemini/tmp/shop", "date": day},
        "opencode": {"cwd": "/work/shop", "date": "Sun Nov 29 2026"},
    }


def test_a_failed_tool_says_so_in_its_result():
    failures = {
        "claude": ["Exit code 1\nls: no such file"],
        "codex": [
            "Chunk ID: 98d51b\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n",
            "unable to locate image at `a.png`: No such file or directory (os error 2)",
        ],
        "gemini": ["<untrusted_context>\nOutput: (empty)\nExit Code: 1\n</untrusted_context>"],
        "opencode": ["File not found: a.txt", "NotFound: FileSystem.makeDirectory (/proc/x)"],
    }
    for name, texts in failures.items():
        assert all(has_failed(Message("tool", text), name) for text in texts), name
        assert not has_failed(Message("tool", "Exit codes are numbers; code 0"), name), name
    assert has_failed(Message("tool", "no", error=True), "")
    assert not has_failed(Message("tool", "Exit code 1"), "")


@pytest.mark.parametrize("name", REQUESTS)
def test_a_hostile_text_is_read_in_linear_time(name):
    """Beginnings without ends, many times: a header is enough to be taken for an agent."""
    agent = known_agents()[name]
    begins = [begin for begin, _ in agent.around] + [
        "temporary directory is: ", "file-based memory at `", "- `r0` = `", "Today's date is ", '"',
        "<environment_context> <cwd>", "**Directory Structure:**\n", "\n# gitStatus\n", "<env> ",
    ]  # fmt: skip
    for begin in begins:
        text = begin * (400_000 // len(begin))
        sent = as_agent_sent(
            Request("chat", "m", {"a": text}, messages=(Message("user", text),), system=text),
            {"user-agent": HEADERS[name]},
        )
        assert sent.world is not None
        assert sent.world.normal(text)
