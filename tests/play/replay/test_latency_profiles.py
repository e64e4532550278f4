"""Profiles have nothing that was not measured."""

from __future__ import annotations

import json
import re
from typing import Any

import click
import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.cli.options.parameters import latency_options
from mockllm.core.distributions import Distribution
from mockllm.core.errors import UsageError
from mockllm.play.replay.latency.profiles import profile, profiles
from tests.cases import for_all


@for_all("name", profiles())
def test_every_figure_has_a_source(name: str) -> None:
    """What was measured, with a number in it; and the page and its date for all of them."""
    listed = profile(name)
    assert listed.figures
    assert re.match(r"https://\S+\Z", listed.source)
    assert listed.date
    for figure in listed.figures:
        assert figure.key in ("ttft", "itl", "prefill", "load-factor")
        assert re.search(r"\d", figure.measured)


@for_all("name", profiles())
def test_every_profile_is_latency(name: str) -> None:
    """In the words of the option; each has both times."""
    latency = profile(name).latency
    assert latency.ttft is not None
    assert latency.itl is not None


def test_an_unknown_profile() -> None:
    """The message has what there is."""
    with pytest.raises(UsageError, match=r"there is no profile 'gpt4o'; did you mean 'gpt-4o'\?"):
        profile("gpt4o")


def test_the_command_lists_them() -> None:
    """For people and as JSON, each with its source."""
    text = CliRunner().invoke(main, ["list", "profiles"]).output
    listed = json.loads(CliRunner().invoke(main, ["list", "profiles", "--json"]).output)
    assert [one["name"] for one in listed] == list(profiles())
    for one in listed:
        assert one["source"] in text
        assert all(figure["measured"] in text for figure in one["figures"])


def test_the_option_wins_over_a_profile() -> None:
    """Key by key."""
    seen: dict[str, Any] = {}

    @click.command()
    @latency_options
    def command(server: dict[str, Any]) -> None:
        seen.update(server)

    options = ["--profile", "gpt-4o", "--latency", "ttft=1s"]
    assert CliRunner().invoke(command, options, default_map={"latency_seed": "7"}).exit_code == 0
    plan = seen["latency"]
    assert plan.seed == "7"
    assert plan.latency.ttft == Distribution("constant", (1_000_000,))
    assert plan.latency.itl == profile("gpt-4o").latency.itl
