"""`mockllm.toml`: a table for each command, with a key for each of its options."""

import pytest

from tests.cases import for_all


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Writes `mockllm.toml` in the current folder."""
    monkeypatch.chdir(tmp_path)
    return (tmp_path / "mockllm.toml").write_text


def test_a_key_is_the_default_of_its_option(mockllm, config):
    """A table has the options of its command; the command line counts more."""
    config('[show]\napi = "anthropic"\nturn = 1\nbody = true\n')
    assert '"stop_reason"' in mockllm("show", "secret-numbers").stdout
    chat = mockllm("show", "secret-numbers", "--api", "chat").stdout
    assert '"chat.completion"' in chat


def test_scenarios_may_stand_in_the_file(mockllm, config, folder, shipped):
    """Paths on the command line take the place of those of the file."""
    config(f"[list]\nscenarios = ['{folder}']\n")
    assert "secret-numbers" not in mockllm("list").stdout
    assert "hello" in mockllm("list").stdout
    assert " hello" not in mockllm("list", shipped / "secret-numbers.yaml").stdout


def test_another_file_is_named(mockllm, config, tmp_path):
    """`--config FILE` takes the place of `mockllm.toml`."""
    config("[list]\njson = false\n")
    (tmp_path / "other.toml").write_text("[list]\njson = true\n")
    assert mockllm("--config", "other.toml", "list").stdout.startswith("[")
    assert mockllm("list").stdout.startswith("NAME")


@for_all(
    ("text", "message"),
    [
        ("[lsit]\n", "mockllm.toml: there is no table 'lsit'; did you mean 'list'?"),
        ("[list]\njsn = true\n", "mockllm.toml: [list]: there is no key 'jsn'; did you mean"),
        ("[list]\njson = 1\n", "mockllm.toml: [list] json must be true or false, got 1"),
        ("[list]\nscenarios = [{}]\n", "[list] scenarios must be a string or a number, got {}"),
        ("[list]\nscenarios = 'no'\n", "mockllm.toml: [list] scenarios: Path 'no' does not exist"),
        ("list = 1\n", "mockllm.toml: `list` must be a table, [list]"),
        ("[list\n", "mockllm.toml must be a TOML file: "),
    ],
)
def test_what_the_file_has_wrong_is_named(mockllm, config, text, message):
    """An error names file, table and key, and what is similar."""
    config(text)
    result = mockllm("list")
    assert result.exit_code == 2
    assert message in result.stderr


@for_all(
    ("text", "command", "message"),
    [
        ("[serve]\nspeed = 'x'\n", "serve", "mockllm.toml: [serve] speed: 'x' is not a number"),
        ("[serve]\nport = 65536\n", "serve", "mockllm.toml: [serve] port: 65536 is not in the"),
        (
            "[serve]\nmax-concurrent = 3\nqueue-timeout = '1s'\n",
            "serve",
            "queue-timeout needs --queue: without it no request waits",
        ),
        (
            "[serve]\nqueue-timeout = '1'\n",
            "serve",
            "[serve] queue-timeout: '1' must be a duration such as 300ms",
        ),
        ("[serve]\nmax-body = 'much'\n", "serve", "[serve] max-body: 'much' is not a size"),
        ("[serve]\nfault = 'refuse'\nfault-burst = 'x'\n", "serve", "'x': must be KEY=VALUE"),
        ("[run]\nquota = 5\n", "run", "'5': must be KEY=VALUE"),
    ],
)
def test_values_are_checked_as_options_are(mockllm, config, text, command, message):
    """A value goes through the type of its option."""
    config(text)
    words = ["serve", "--fallback", "auto"] if command == "serve" else ["run", "--", "true"]
    result = mockllm(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
