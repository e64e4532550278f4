"""The list of the SDKs' operations that a server with `--fallback auto` does not know."""

from __future__ import annotations

import pytest

from tools.operations import GROUPS, PAGE, Operation, group_of, groups, main, operations, unknown


def test_operations_of_each_sdk() -> None:
    """The source of an SDK says how it calls its service, whichever way it is written."""
    assert {
        Operation("openai", "chat.completions.create", "POST", "/v1/chat/completions"),
        Operation("openai", "vector_stores.search", "POST", "/v1/vector_stores/x/search"),
        Operation("openai", "beta.agents.sessions.list", "GET", "/v1/agents/sessions"),
        Operation("anthropic", "beta.files.download", "GET", "/v1/files/x/content"),
        Operation("google-genai", "caches.update", "PATCH", "/v1beta/cachedContents/x"),
        Operation("google-genai", "files.create", "POST", "/upload/v1beta/files"),
        Operation("cohere", "datasets.delete", "DELETE", "/v1/datasets/x"),
        Operation("ollama", "create_blob", "POST", "/api/blobs/x"),
        Operation("botocore", "Converse", "POST", "/model/x/converse"),
    } <= set(operations())


def test_unknown_operations() -> None:
    """An object that is not there is known, and so is a request that is refused."""
    known = Operation("openai", "conversations.retrieve", "GET", "/v1/conversations/x")
    refused = Operation("cohere", "chat", "POST", "/v1/chat")
    other = Operation("openai", "evals.list", "GET", "/v1/evals")
    assert unknown([known, refused, other]) == [other]


@pytest.mark.parametrize(
    ("sdk", "name", "title"),
    [
        ("openai", "videos.create", "Calls of models"),
        ("openai", "decisions.create", "Services beside the models"),
        ("anthropic", "organization.users.list", "Administration"),
        ("botocore", "ApplyGuardrail", "Objects beside the calls"),
        ("openai", "new_service.create", None),
        ("anthropic", "models.delete", None),
    ],
)
def test_groups(sdk: str, name: str, title: str | None) -> None:
    """A new operation is in none: somebody decides about it."""
    found = group_of(Operation(sdk, name, "GET", "/v1/x"))
    assert (None if found is None else found["title"]) == title


@pytest.mark.slow
def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """Each operation that gets a 404 has a reason, each group has some, and the page is up to
    date."""
    assert main(["--check"]) == 0, capsys.readouterr().out
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"## {group['title']}\n" in text for group in groups()), GROUPS
