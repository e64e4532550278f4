"""Runs a gateway:
`python -m tests.conformance.gateways NAME --port PORT --upstream URL [--bug NAME]`."""

from __future__ import annotations

import argparse

from aiohttp import web

from tests.conformance.gateways.planted import BUGS, gateway


def main() -> None:
    """Serves until it is killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.gateways")
    parser.add_argument(
        "name",
        choices=["passing", "editing", "translating", "translating_back", "responses_on_chat"],
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True, help="as an SDK is given it")
    parser.add_argument("--bug", choices=sorted(BUGS))
    given = parser.parse_args()
    bug = BUGS[given.bug] if given.bug else None
    app = gateway(given.name, given.upstream, bug)
    web.run_app(app, host="127.0.0.1", port=given.port, handler_cancellation=True)


if __name__ == "__main__":
    main()
