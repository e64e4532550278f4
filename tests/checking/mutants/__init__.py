"""Accumulators with one mistake each, all of which real clients have made.

Each is one of the kit's reference accumulators with a few lines changed. The YAML file of an API
lists its mutants by level (payloads or bytes) and family; `reports.yaml` has more, by API. A name
in backquotes is the quirk that shows the mistake. The keys of a mutant:

- `mistake`: what it does, with projects that did it; `seen`: more of them
- `breaks`: the invariants that the report names, perhaps with others; `breaks only`: exactly these
- `found by`: the case that catches it, or the cases; or why none does: `escapes`, or `tolerated`
  where the kit accepts its outcomes
- `like`: the class with this mistake, where several APIs have it under other names
- `policy`: what the client promises, if not the default

Its class stands in the modules of the API, or in `common`.
"""

from __future__ import annotations

from tests.checking.mutants.declared import FAMILIES, MUTANTS, Mutant

__all__ = ["FAMILIES", "MUTANTS", "Mutant"]
