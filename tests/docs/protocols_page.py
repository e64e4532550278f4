"""Writes docs/protocols.md: `python -m tests.docs.protocols_page`.

Everything below the introduction is generated: the lists are those of `losses.yaml`, and
the table is measured with real clients on every shipped scenario.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from mockllm import ServerOptions, ServerThread
from mockllm.play.replay.loading import load
from mockllm.play.replay.losses import find_losses
from mockllm.wire.protocols import PROTOCOLS
from tests.clients import matrix, vercel_matrix
from tests.clients.matrix import Cell

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "protocols.md"
LOSSES = Path(__file__).with_name("losses.yaml")

HEAD = """\
# The protocols

This page lists, for each protocol, what it cannot express. A scenario is written in neutral terms,
and each protocol sends it as its real service does. Where a service has no way to express a part
of a scenario, that part is lost or changed.

| to | do this |
|---|---|
| see the losses of your own scenarios, turn by turn | `mockllm validate --losses scenarios/` |
| leave out protocols that a scenario is not meant for | `apis` in the scenario |
| play other content over one protocol | `when` in the turn |
| find paths and base URLs | [the server](server.md) |

The lists say what *comes back*: what a client can read from the answer, compared with the scenario.
The table at the end shows every shipped scenario that goes one way with every client.

`python -m tests.docs.protocols_page` generates this page; a test compares the two.
"""

_TABLE_HEAD = """\
## Every scenario with every client

✓ means that the client read every turn of the scenario as written. A number refers to the note
below the table.
"""


def losses() -> str:
    """What each protocol cannot express, and which shipped scenarios that concerns."""
    scenarios = load([ROOT / "scenarios"])
    written = yaml.safe_load(LOSSES.read_text())
    out = []
    for protocol in PROTOCOLS.values():
        out += [f"## {protocol.address.title}", "", f"`{protocol.name}` in a scenario.", ""]
        out += [f"- {line}" for line in written[protocol.name]]
        met = [
            str(loss)
            for scenario in scenarios
            for loss in find_losses(scenario, {protocol.name: protocol})
        ]
        if met:
            out += ["", "In the scenarios that come with mockllm:", "", "```text", *met, "```"]
        out.append("")
    return "\n".join(out)


def cells_under_node() -> dict[Cell, str]:
    """The cells of Vercel's SDK; empty where it is not installed."""
    scenarios = load([ROOT / "scenarios"])
    with ServerThread(scenarios, ServerOptions(speed=0)) as server:
        return vercel_matrix.cells(server.url)


def page(cells: Mapping[Cell, str]) -> str:
    """The whole page, with the cells of all clients."""
    return f"{HEAD}\n{losses()}\n{_TABLE_HEAD}\n{matrix.table(cells).strip()}\n"


if __name__ == "__main__":
    under_node = cells_under_node()
    if not under_node:
        raise SystemExit("the table needs Node and tests/clients/vercel installed: make test")
    PAGE.write_text(page({**matrix.cells(), **under_node}))
    print(f"{PAGE} written")
