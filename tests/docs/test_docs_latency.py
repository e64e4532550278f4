"""What docs/latency.md has can be written as it stands there."""

from __future__ import annotations

import re
import shlex

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.core.distributions import read_distribution
from mockllm.play.replay.loading import loads
from mockllm.scenario.durations import read_duration
from mockllm.scenario.reading.latency import read_latency
from tests.docs.pages import text_of

PAGE = text_of("latency")


def fenced(info: str) -> list[str]:
    return re.findall(rf"^```{info}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_scenarios_load() -> None:
    """Each example is whole."""
    assert [bool(loads(block)) for block in fenced("yaml")] == [True]


def test_texts_of_options_are_read() -> None:
    """In commands, and in the text."""
    texts = re.findall(r"--latency '([^']+)'", PAGE)
    assert len(texts) >= 2
    assert all(map(read_latency, texts))


def test_distributions_are_read() -> None:
    """Every form in the table but that with a file."""
    table = PAGE.partition("## Distributions")[2].partition("##")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    forms = [form for row in rows for form in row.split("`, `")]
    written = [form.strip("`") for form in forms if "FILE" not in form]
    assert len(written) == 6
    assert all(read_distribution(form, read_duration) for form in written)


@pytest.mark.parametrize("block", fenced("bash"))
def test_commands_have_known_options(block: str) -> None:
    """With `--help` at their end they say what there is."""
    words = shlex.split(block.replace("\\\n", ""))
    assert words[0] == "mockllm"
    assert CliRunner().invoke(main, [*words[1:], "--help"]).exit_code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--queue", "3"], "--queue and queue-timeout need --max-concurrent"),
        (["--latency", "tfft=1s"], "latency 'tfft=1s': there is no 'tfft'; did you mean 'ttft'?"),
    ],
)
def test_what_is_wrong_is_said(options: list[str], message: str) -> None:
    """Before the server listens."""
    result = CliRunner().invoke(main, ["serve", ".", *options])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
