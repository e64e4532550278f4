"""The ids that a server makes where its paths have them (`--path`): threads, and runs in them.

AG-UI leaves the paths to each server. Servers that keep threads let the client create a run before
it is streamed, as Soliplex does: `POST .../agui` answers with a thread and its first run, `POST
.../agui/{thread}` with a further run, and `POST .../agui/{thread}/{run}` with the stream.

https://github.com/soliplex/soliplex/blob/main/src/soliplex/views/agui.py
"""

from __future__ import annotations

import re

from mockllm.core.http import Target
from mockllm.core.seeded import derive_uuid
from mockllm.wire.protocols.ag_ui import CREATES
from mockllm.wire.protocols.base import Lookup
from mockllm.wire.protocols.records import Json

_ID = re.compile(r"_?id$", re.IGNORECASE)
_CREATED = "2026-01-01T00:00:00Z"


def create(lookup: Lookup) -> Json:
    """The answer to a request for a run: the run, or a thread with its first run. Its ids are the
    same for the same number of earlier requests in the session."""
    known = _bare(lookup.target)
    number = lookup.number
    where = {f"{name}_id": value for name, value in known.items()}
    thread = known.get("thread") or derive_uuid("thread", number)
    run: Json = {
        **where,
        "thread_id": thread,
        "run_id": derive_uuid("run", number),
        "parent_run_id": lookup.request.get("parent_run_id"),
        "created": _CREATED,
        "run_input": None,
        "events": [],
        "metadata": lookup.request.get("metadata"),
    }
    if "thread" in known:
        return run
    return {
        **where,
        "thread_id": thread,
        "runs": {run["run_id"]: {**run, "metadata": None}},
        "created": _CREATED,
        "metadata": run["metadata"],
    }


def ids_of_path(target: Target) -> dict[str, str]:
    """The `threadId` and `runId` that a path has, for a body that leaves them out."""
    known = _bare(target)
    return {f"{name}Id": known[name] for name in CREATES if name in known}


def _bare(target: Target) -> dict[str, str]:
    return {_ID.sub("", name).lower(): value for name, value in target.segments.items()}
