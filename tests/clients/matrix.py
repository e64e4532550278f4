"""The table of all shipped scenarios over all APIs with all clients, made by running them.

A cell is "equal" where a client understands every turn of a conversation as the scenario says
it, to its last fragment and its errors. Where something cannot be said, the cell is the reason,
which has to be in `LISTED`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import anthropic
import httpx
import openai
from google import genai
from google.genai import errors, types

from mockllm.scenario.model import Scenario
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.clients import ag_ui_client, anthropic_client, asking, google_client
from tests.clients.conversation import SCENARIOS, converse, drive, plain_positions
from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Failure, conveyed, written

Cell = tuple[str, str, str]
"""Scenario, API, client."""

EQUAL = "equal"

LISTED: dict[Cell, str] = {
    ("citations", "agui", "*"): "AG-UI has no citations.",
    ("content-filtered", "anthropic", "*"): (
        "Anthropic has one word, `refusal`, for a filtered answer and a refused one."
    ),
    ("content-filtered", "agui", "*"): "AG-UI does not say why a run ended.",
    ("length-truncated", "agui", "*"): "AG-UI does not say why a run ended.",
    ("logprobs", "anthropic", "*"): "There are no log probabilities in this API.",
    ("logprobs", "gemini", "*"): "The log probabilities of Gemini are not played.",
    ("logprobs", "agui", "*"): "There are no log probabilities in this API.",
    ("malformed-arguments", "gemini", "*"): (
        "Gemini sends arguments as a value: a call whose arguments are no JSON is left out, and "
        "the answer ends in `MALFORMED_FUNCTION_CALL`."
    ),
    ("malformed-arguments", "anthropic", "anthropic helper"): (
        "The helper of `anthropic` takes what there is of malformed arguments for all of them."
    ),
    ("refusal", "anthropic", "*"): "A refusal is text; that it is one is said by how it ends.",
    ("refusal", "gemini", "*"): "A refusal is text like any other.",
    ("refusal", "agui", "*"): "A refusal is text like any other.",
}
"""Why a cell is not equal; `*` stands for every client."""

BLIND: dict[Cell, tuple[str, ...]] = {
    ("malformed-arguments", "anthropic", "anthropic helper"): ("calls",),
}
"""What of an answer (fields of `Seen`) a client itself is known to get wrong."""

EXTRA: list[Callable[[str], dict[Cell, str]]] = []
"""Further clients: each is called with the URL of a server of all shipped scenarios, where it
may use sessions of its own (`/s/NAME/…`), and gives its cells."""

Asking = Callable[[str, Json], Answer]
"""A client: asks the server at a root URL, that of a session, and reads the answer."""

ERRORS = (openai.APIError, anthropic.APIError, errors.APIError, ag_ui_client.RunError)


@contextmanager
def asking_clients() -> Iterator[dict[tuple[str, str], Asking]]:
    """Every Python client, by API and name."""
    with ExitStack() as stack:
        http = stack.enter_context(httpx.Client(trust_env=False))
        oai = stack.enter_context(
            openai.OpenAI(
                api_key="sk-test",
                base_url="http://127.0.0.1",
                http_client=openai.DefaultHttpxClient(trust_env=False),
            )
        )
        claude = stack.enter_context(
            anthropic.Anthropic(
                api_key="sk-ant-test",
                http_client=anthropic.DefaultHttpxClient(trust_env=False),
            )
        )
        again = types.HttpRetryOptions(attempts=3, initial_delay=0, max_delay=0, jitter=0)
        options = types.HttpOptions(httpx_client=http, retry_options=again)
        gemini = genai.Client(api_key="AIza-test", http_options=options)
        found: dict[tuple[str, str], Asking] = {}
        for (api, how), ask in asking.ASK.items():
            found[api, f"openai {how}"] = partial(_openai, oai, ask)
        for how, ask in anthropic_client.ASK.items():
            found["anthropic", f"anthropic {how}"] = partial(_anthropic, claude, ask)
        for how, ask in google_client.ASK.items():
            found["gemini", f"google-genai {how}"] = partial(_google, gemini, ask)
        found["agui", "ag-ui-protocol"] = partial(_ag_ui, http)
        yield found


def _openai(client: openai.OpenAI, ask: Callable, root: str, request: Json) -> Answer:
    return ask(client.with_options(base_url=f"{root}/v1"), request)


def _anthropic(client: anthropic.Anthropic, ask: Callable, root: str, request: Json) -> Answer:
    return ask(client.with_options(base_url=root), request)


def _google(client: genai.Client, ask: Callable, root: str, request: Json) -> Answer:
    # A client of its own for each session would be made anew, with all its certificates.
    config = {**request.get("config", {}), "http_options": types.HttpOptions(base_url=root)}
    return ask(client, {**request, "config": config})


def _ag_ui(http: httpx.Client, root: str, request: Json) -> Answer:
    return ag_ui_client.ask(http, f"{root}/agui", request)


# Cells


def listed(cell: Cell) -> str | None:
    """Why a cell is not equal, as it is listed."""
    return LISTED.get(cell) or LISTED.get((*cell[:2], "*"))


def loses(scenario: Scenario, api: str) -> bool:
    """Whether an API cannot say all of a scenario."""
    return any(
        written(scenario, position, api, "x") != conveyed(scenario, position, api, "x")
        for position in plain_positions(scenario, api)
    )


def run(cell: Cell, ask: Asking, url: str) -> str:
    """What a cell says, by having its conversation.

    Raises:
        AssertionError: the client understands something else than it should, or a loss is not
            listed, or one is listed that is none.
    """
    name, api, client = cell
    scenario = SCENARIOS[name]
    root = f"{url}/s/matrix-{name}-{api}-{client.replace(' ', '-')}"

    def asked(request: Json) -> Answer | Failure:
        try:
            return ask(root, request)
        except ERRORS as error:
            return Failure(str(error))

    drive(converse(scenario, api, blind=BLIND.get(cell, ()), failing=True), asked)
    reason = listed(cell)
    differs = cell in BLIND or loses(scenario, api)
    assert differs == (reason is not None), "not listed" if differs else f"no loss: {reason}"
    return reason or EQUAL


def cells(names: Iterable[str] = tuple(SCENARIOS)) -> dict[Cell, str]:
    """Every cell of the table: `EQUAL`, or the loss that is listed for it.

    Args:
        names: of the scenarios that are its rows; further clients choose theirs by themselves.

    Raises:
        AssertionError: as `run`; a note says in which cell.
    """
    found: dict[Cell, str] = {}
    options = ServerOptions(speed=0)
    with ServerThread(SCENARIOS.values(), options) as server, asking_clients() as clients:
        for (api, client), ask in clients.items():
            for name in names:
                if api in SCENARIOS[name].apis:
                    cell = (name, api, client)
                    try:
                        found[cell] = run(cell, ask, server.url)
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
    and below it what the marks stand for. A cell that is not there is empty."""
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
        told = " | ".join(marks[cell] if cell is not None else "" for cell in row)
        lines.append(f"| {name} | {told} |")
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(ranked, 1))]
    return "\n".join(lines).rstrip() + "\n"


def _first(
    cells: Mapping[Cell, str], names: list[str], columns: list[tuple[str, str]], reason: str
) -> int:
    """Where a reason comes first, row by row."""
    every = (cells.get((name, *column)) for name in names for column in columns)
    return next(place for place, cell in enumerate(every) if cell == reason)
