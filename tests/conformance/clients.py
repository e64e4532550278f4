"""The table of all clients, in the order of docs/clients.md. Only data may live here."""

from __future__ import annotations

from functools import partial
from importlib import metadata

from mockllm.scenario.model import Api
from tests.conformance.client import Client, NotInstalledError, found_in
from tests.conformance.environment import Environment
from tests.conformance.node_clients import NODE_CLIENTS

__all__ = ["CLIENTS", "PYTHON_CLIENTS", "Client", "NotInstalledError"]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise NotInstalledError(f"{package} is not here: `pip install {package}`") from None


def _here(
    name: str,
    package: str,
    api: Api,
    where: str,
    *unseen: str,
    notes: str = "",
) -> Client:
    """A client of this environment; `where` is `module.function` in this package."""
    run = found_in(*where.split("."))
    return Client(name, package, partial(_version, package), api, run, frozenset(unseen), notes)


def _elsewhere(
    environment: Environment,
    name: str,
    package: str,
    api: Api,
    where: str,
    *unseen: str,
    notes: str = "",
) -> Client:
    """A client of another environment; `where` is its name there."""
    run = environment.run(where)
    return Client(name, package, environment.version, api, run, frozenset(unseen), notes)


_LITELLM = Environment("litellm")
_LANGCHAIN_GOOGLE = Environment("langchain_google")

_NOT_OPENAI = "OpenAI's own API has no reasoning here; the client ignores what other servers add."
_NO_ACCUMULATION = "It has no accumulator: the test adds up the chunks as the SDK's guide does."
_ONE_ANSWER = (
    "The outcome is `raw_responses[0]` of a run that ends after one answer, even one with calls."
)
_NO_TOOLS_RUN = "Used through `direct`, which runs no tool and does not validate arguments."
_COUNTED = "It counts tokens itself if the stream has no usage, so it always reports some."

PYTHON_CLIENTS: tuple[Client, ...] = (
    _here(
        "openai chat.completions.stream()",
        "openai",
        "chat",
        "openai_python.chat",
        "reasoning",
        notes=_NOT_OPENAI,
    ),
    _here(
        "openai responses.stream()",
        "openai",
        "responses",
        "openai_python.responses",
        notes=(
            "The outcome is `get_final_response()`, which accepts `response.completed` as the only "
            "end; the other ends are visible as events only."
        ),
    ),
    _here(
        "anthropic messages.stream()",
        "anthropic",
        "anthropic",
        "anthropic_python.messages",
        "refusal",
    ),
    _here(
        "google-genai generate_content_stream()",
        "google-genai",
        "gemini",
        "google_python.contents",
        "refusal",
        notes=_NO_ACCUMULATION,
    ),
    _here(
        "langchain ChatOpenAI",
        "langchain-openai",
        "chat",
        "langchain_python.chat",
        "reasoning",
        notes=_NOT_OPENAI,
    ),
    _here(
        "langchain ChatOpenAI(use_responses_api=True)",
        "langchain-openai",
        "responses",
        "langchain_python.responses",
    ),
    _here(
        "langchain ChatAnthropic",
        "langchain-anthropic",
        "anthropic",
        "langchain_python.messages",
        "refusal",
    ),
    _elsewhere(
        _LANGCHAIN_GOOGLE,
        "langchain ChatGoogleGenerativeAI",
        "langchain-google-genai",
        "gemini",
        "contents",
        "refusal",
    ),
    _here(
        "pydantic-ai OpenAIChatModel",
        "pydantic-ai-slim",
        "chat",
        "pydantic_python.chat",
        "refusal",
        notes=_NO_TOOLS_RUN,
    ),
    _here(
        "pydantic-ai OpenAIResponsesModel",
        "pydantic-ai-slim",
        "responses",
        "pydantic_python.responses",
        "refusal",
        notes=_NO_TOOLS_RUN,
    ),
    _here(
        "pydantic-ai AnthropicModel",
        "pydantic-ai-slim",
        "anthropic",
        "pydantic_python.messages",
        "refusal",
        notes=_NO_TOOLS_RUN,
    ),
    _here(
        "openai-agents OpenAIChatCompletionsModel",
        "openai-agents",
        "chat",
        "agents_python.chat",
        "finish",
        notes=_ONE_ANSWER,
    ),
    _here(
        "openai-agents OpenAIResponsesModel",
        "openai-agents",
        "responses",
        "agents_python.responses",
        "finish",
        notes=_ONE_ANSWER,
    ),
    _elsewhere(
        _LITELLM,
        "litellm stream_chunk_builder() of openai/",
        "litellm",
        "chat",
        "chat",
        notes=_COUNTED,
    ),
    _elsewhere(
        _LITELLM,
        "litellm stream_chunk_builder() of anthropic/",
        "litellm",
        "anthropic",
        "messages",
        "refusal",
        notes=_COUNTED,
    ),
    _here(
        "ag-ui-protocol types",
        "ag-ui-protocol",
        "agui",
        "agui_python.agent",
        "refusal",
        notes="Types without a client: the test picks the type of each event and adds them up.",
    ),
)

CLIENTS: tuple[Client, ...] = PYTHON_CLIENTS + NODE_CLIENTS
"""Every client in every way of using it that is tested."""
