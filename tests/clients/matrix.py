"""The table of all shipped scenarios over all APIs with all clients, built by running them.

A cell is "equal" if a client reads every turn of a conversation, errors included, as the scenario
has it. If the API or the client loses something, the cell is the reason, which must be in
`LISTED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import anthropic
import httpx
import ollama
import openai
from botocore.exceptions import ClientError
from google import genai
from google.genai import errors, types

from mockllm.scenario.model import Scenario
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients import (
    ag_ui_client,
    anthropic_client,
    bedrock_client,
    google_client,
    ollama_client,
    openai_client,
)
from tests.clients.conversation import SCENARIOS, converse, drive, plain_positions
from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Failure, conveyed, written
from tests.timeouts import GIVE_UP

Cell = tuple[str, str, str]
"""Scenario, API, client."""

EQUAL = "equal"

LISTED: dict[Cell, str] = {
    ("citations", "agui", "*"): "AG-UI has no citations.",
    ("content-filtered", "anthropic", "*"): (
        "Anthropic has one finish reason, `refusal`, for a filtered answer and a refused one."
    ),
    ("content-filtered", "agui", "*"): "AG-UI has no finish reason.",
    ("length-truncated", "agui", "*"): "AG-UI has no finish reason.",
    ("logprobs", "anthropic", "*"): "This API has no log probabilities.",
    ("logprobs", "agui", "*"): "This API has no log probabilities.",
    ("malformed-arguments", "gemini", "*"): (
        "Gemini sends arguments as a JSON object: a call with other arguments is left out, and "
        "the answer ends in `MALFORMED_FUNCTION_CALL`."
    ),
    ("malformed-arguments", "anthropic", "anthropic helper"): (
        "The helper of `anthropic` returns the part of malformed arguments that parses."
    ),
    ("refusal", "anthropic", "*"): "A refusal is text; only the finish reason marks it.",
    ("refusal", "gemini", "*"): "A refusal is text like any other, and nothing marks it.",
    ("refusal", "agui", "*"): "A refusal is text like any other, and nothing marks it.",
    ("citations", "ollama", "*"): "Ollama has no citations.",
    ("content-filtered", "ollama", "*"): "Ollama has no finish reason for a filtered answer.",
    ("malformed-arguments", "ollama", "*"): (
        "Ollama sends arguments as a JSON object: a call with other arguments is left out."
    ),
    ("refusal", "ollama", "*"): "A refusal is text like any other, and nothing marks it.",
    ("reasoning", "ollama", "*"): "Ollama does not count the tokens of reasoning apart.",
    ("token-usage", "ollama", "*"): (
        "Ollama does not count the tokens of reasoning apart, and `ollama` none of the cache."
    ),
    ("logprobs", "bedrock", "*"): "This API has no log probabilities.",
    ("reasoning", "bedrock", "*"): "Amazon Bedrock counts no tokens of reasoning.",
    ("refusal", "bedrock", "*"): "A refusal is text, and ends as a filtered answer.",
    ("token-usage", "bedrock", "*"): "Amazon Bedrock counts no tokens of reasoning.",
}
"""Why a cell is not equal; `*` stands for every client."""

MISREAD: dict[Cell, tuple[str, ...]] = {
    ("malformed-arguments", "anthropic", "anthropic helper"): ("calls",),
    ("token-usage", "ollama", "ollama body"): ("usage",),
    ("token-usage", "ollama", "ollama stream"): ("usage",),
}
"""The fields of `Seen` that a client itself reads wrongly."""

EXTRA: list[Callable[[str], dict[Cell, str]]] = []
"""Further clients. Each is called with the URL of a server of all shipped scenarios, may use its
own sessions (`/s/NAME/…`), and returns its cells."""

Send = Callable[[str, Json], Answer]
"""A client: sends a request to the root URL of a session, and reads the answer."""

ERRORS = (openai.APIError, anthropic.APIError, errors.APIError, ag_ui_client.RunError)
ERRORS += (ollama.ResponseError, ClientError)


@contextmanager
def python_clients() -> Iterator[dict[tuple[str, str], Send]]:
    """Every Python client, by API and name."""
    with ExitStack() as stack:
        http = stack.enter_context(httpx.Client(trust_env=False, timeout=GIVE_UP))
        oai = stack.enter_context(
            openai.OpenAI(
                api_key="sk-test",
                timeout=GIVE_UP,
                base_url="http://127.0.0.1",
                http_client=openai.DefaultHttpxClient(trust_env=False),
            )
        )
        claude = stack.enter_context(
            anthropic.Anthropic(
                api_key="sk-ant-test",
                timeout=GIVE_UP,
                http_client=anthropic.DefaultHttpxClient(trust_env=False),
            )
        )
        again = types.HttpRetryOptions(attempts=3, initial_delay=0, max_delay=0, jitter=0)
        options = types.HttpOptions(httpx_client=http, retry_options=again)
        gemini = genai.Client(api_key="AIza-test", http_options=options)
        found: dict[tuple[str, str], Send] = {}
        for (api, how), send in openai_client.WAYS.items():
            found[api, f"openai {how}"] = partial(_openai, oai, send)
        for how, send in anthropic_client.WAYS.items():
            found["anthropic", f"anthropic {how}"] = partial(_anthropic, claude, send)
        for how, send in google_client.WAYS.items():
            found["gemini", f"google-genai {how}"] = partial(_google, gemini, send)
        found["agui", "ag-ui-protocol"] = partial(_ag_ui, http)
        for how, send in ollama_client.WAYS.items():
            found["ollama", f"ollama {how}"] = partial(_ollama, send)
        for how, send in bedrock_client.WAYS.items():
            found["bedrock", f"boto3 {how}"] = partial(_bedrock, send)
        yield found


def _openai(client: openai.OpenAI, send: Callable, root: str, request: Json) -> Answer:
    return send(client.with_options(base_url=f"{root}/v1"), request)


def _anthropic(client: anthropic.Anthropic, send: Callable, root: str, request: Json) -> Answer:
    return send(client.with_options(base_url=root), request)


def _google(client: genai.Client, send: Callable, root: str, request: Json) -> Answer:
    # One client for all sessions: a new one would load all its certificates again.
    config = {**request.get("config", {}), "http_options": types.HttpOptions(base_url=root)}
    return send(client, {**request, "config": config})


def _ollama(send: Callable, root: str, request: Json) -> Answer:
    with ollama.Client(host=root, timeout=GIVE_UP, trust_env=False) as client:
        return send(client, request)


def _ag_ui(http: httpx.Client, root: str, request: Json) -> Answer:
    return ag_ui_client.send(http, f"{root}/agui", request)


def _bedrock(send: Callable, root: str, request: Json) -> Answer:
    with bedrock_client.bedrock(root) as client:
        return send(client, request)


# Cells


def listed(cell: Cell) -> str | None:
    """The listed reason why a cell is not equal, or None."""
    return LISTED.get(cell) or LISTED.get((*cell[:2], "*"))


def loses(scenario: Scenario, api: str) -> bool:
    """Whether an API loses anything of a scenario."""
    return any(
        written(scenario, position, api, "x") != conveyed(scenario, position, api, "x")
        for position in plain_positions(scenario, api)
    )


def run(cell: Cell, send: Send, url: str) -> str:
    """Runs the conversation of a cell and returns its text.

    Raises:
        AssertionError: the client reads another content, or a loss is not listed, or a listed loss
            does not occur.
    """
    name, api, client = cell
    scenario = SCENARIOS[name]
    root = f"{url}/s/matrix-{name}-{api}-{client.replace(' ', '-')}"

    def send_request(request: Json) -> Answer | Failure:
        try:
            return send(root, request)
        except ERRORS as error:
            return Failure(str(error))

    ids = api != "ollama"  # its client drops them
    conversation = converse(scenario, api, ids=ids, ignored=MISREAD.get(cell, ()), failing=True)
    drive(conversation, send_request)
    reason = listed(cell)
    differs = cell in MISREAD or loses(scenario, api)
    assert differs == (reason is not None), "not listed" if differs else f"no loss: {reason}"
    return reason or EQUAL


def cells(names: Iterable[str] = tuple(SCENARIOS)) -> dict[Cell, str]:
    """Every cell of the table: `EQUAL`, or the loss that is listed for it.

    Args:
        names: the scenarios that are the rows; further clients choose their own.

    Raises:
        AssertionError: as `run`; a note names the cell.
    """
    found: dict[Cell, str] = {}
    options = ServerOptions(speed=0)
    with ServerThread(SCENARIOS.values(), options) as server, python_clients() as clients:
        for (api, client), send in clients.items():
            for name in names:
                if SCENARIOS[name].plays_over(api):
                    cell = (name, api, client)
                    try:
                        found[cell] = run(cell, send, server.url)
                    except AssertionError as error:
                        error.add_note(f"scenario {name} over {api} with {client}")
                        raise
        for extra in EXTRA:
            found |= extra(server.url)
    return found


# The table

_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def table(cells: Mapping[Cell, str]) -> str:
    """The cells as a Markdown table: a row for each scenario, a column for each API and client,
    and the reasons of the marks below. A missing cell is empty."""
    names = list(dict.fromkeys(name for name, _, _ in cells))
    columns = list(dict.fromkeys((api, client) for _, api, client in cells))
    reasons = [reason for reason in cells.values() if reason != EQUAL]
    order = sorted(names)
    ranked = sorted(
        dict.fromkeys(reasons), key=lambda reason: _first(cells, order, columns, reason)
    )
    marks = {reason: str(i).translate(_SUPERSCRIPT) for i, reason in enumerate(ranked, 1)}
    marks[EQUAL] = "✓"
    lines = [
        "| scenario | " + " | ".join(f"{api}<br>{client}" for api, client in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name in order:
        row = [cells.get((name, api, client)) for api, client in columns]
        marked = " | ".join(marks[cell] if cell is not None else "" for cell in row)
        lines.append(f"| {name} | {marked} |")
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(ranked, 1))]
    return "\n".join(lines).rstrip() + "\n"


def _first(
    cells: Mapping[Cell, str], names: list[str], columns: list[tuple[str, str]], reason: str
) -> int:
    """The position of the first cell with a reason, row by row."""
    every = (cells.get((name, *column)) for name in names for column in columns)
    return next(index for index, cell in enumerate(every) if cell == reason)
