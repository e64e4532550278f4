"""The comparison of the SDKs' types with what the encoders send."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from tools.coverage.tree import Tree
from tools.unions import roots
from tools.unions.comparison import REASONS, comparison, outermost
from tools.unions.roots import UNIONS, SdkUnion, items, items_of
from tools.unions.sent import PROBES, probe_scenarios, sent_items


class Text(BaseModel):
    type: Literal["text"]
    text: str


class Image(BaseModel):
    type: Literal["image"]
    url: str


class Delta(BaseModel):
    type: Literal["delta"]
    part: Annotated[Text | Image, Field(discriminator="type")]


class Stop(BaseModel):
    type: Literal["stop"]
    reason: Literal["end", "limit"]


EVENT = Annotated[Delta | Stop, Field(discriminator="type")]


def test_only_the_outermost_missing_items_are_listed() -> None:
    """A value, a member and an event are listed; the fields of a member that is not sent are not,
    and neither are those of a type that is never sent."""
    listed = [*Tree(EVENT).items(), "Shared/field"]
    sent = {"delta", "delta/part", "delta/part[text]", "delta/part[text].text"}
    assert outermost(listed, sent) == ["delta/part[image]", "stop"]
    more = {*sent, "stop", "stop/reason", "stop/reason=end"}
    assert outermost(listed, more) == ["delta/part[image]", "stop/reason=limit"]


@pytest.fixture
def _newer_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ollama's API as a release has it whose answer has one more field."""
    from ollama import ChatResponse

    class NewerChatResponse(ChatResponse):
        feelings: str | None = None

    monkeypatch.setattr("ollama.NewerChatResponse", NewerChatResponse, raising=False)
    monkeypatch.setitem(UNIONS, "ollama", SdkUnion("ollama", "ollama:NewerChatResponse"))
    caches = (roots.items, roots._tree, roots._root, comparison)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("_newer_ollama")
def test_what_a_new_release_adds_is_a_problem_that_says_what_to_do() -> None:
    """A field that is neither sent nor explained is named, with the version of the SDK, the
    scenario that would play it and the file for a reason."""
    (problem,) = comparison("ollama").problems
    assert problem.startswith("ollama: NewerChatResponse/feelings of ollama 0.")
    assert "is not sent. Let the encoder send it and the decoder read it" in problem
    assert "tools/unions/probes/ollama.yaml" in problem
    assert "tools/unions/reasons/ollama.yaml" in problem


def test_a_reason_for_what_is_sent_is_a_problem(tmp_path, monkeypatch) -> None:
    """Once an encoder sends an item, its row has to go."""
    reasons = (REASONS / "ollama.yaml").read_text(encoding="utf-8")
    (tmp_path / "ollama.yaml").write_text(f'{reasons}"ChatResponse/model": Not yet.\n')
    monkeypatch.setattr("tools.unions.comparison.REASONS", tmp_path)
    comparison.cache_clear()
    assert comparison("ollama").problems == (
        "ollama: the reason for 'ChatResponse/model' is for no item that is not sent",
    )
    comparison.cache_clear()


@pytest.mark.slow
def test_items_of_bodies_and_of_botocore_are_listed() -> None:
    """Bodies have their items under the name of their type, and botocore's model has its unions,
    its enumerations and its exceptions as items."""
    assert {"response.completed", "Response/output[][mcp_call]"} <= set(items("responses"))
    assert "ChatCompletion/choices[].finish_reason=stop" in items("chat")
    assert "content_block_start/content_block[compaction]" in items("anthropic")
    bedrock = set(items("bedrock"))
    assert "ConverseStreamOutput/contentBlockDelta.delta.reasoningContent.text" in bedrock
    assert "ConverseResponse/stopReason=guardrail_intervened" in bedrock
    assert "ConverseStreamOutput/throttlingException" in bedrock
    body = {"stopReason": "new", "extra": 1}
    assert items_of("bedrock", body, streamed=False) == {
        "ConverseResponse/stopReason",
        "+ConverseResponse/stopReason=new",
        "+ConverseResponse/extra",
    }


def test_frames_that_a_scenario_writes_out_are_not_sent_by_an_encoder() -> None:
    """The kit has a scenario with the event `debug` as a frame, which does not count."""
    assert "debug" in items("cohere")
    assert "debug" not in sent_items("cohere")


def test_each_api_has_its_files() -> None:
    """There are reasons and scenarios for no other API, and each scenario plays over its own."""
    assert {path.stem for path in REASONS.glob("*")} == set(UNIONS)
    assert {path.stem for path in PROBES.glob("*")} <= {*UNIONS, "requests"}
    for api in UNIONS:
        assert all(scenario.apis == (api,) for scenario in probe_scenarios(api))


@pytest.mark.slow
@pytest.mark.parametrize("api", UNIONS)
def test_every_item_is_sent_or_has_a_reason(api) -> None:
    """No event, block, field or value of the SDK's types is left out without a written reason."""
    assert comparison(api).problems == ()
