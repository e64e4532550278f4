"""Conformance: programs that are run and judged, services that are compared, and their reports.

Here live `clients` (in any language: the protocol of runners, pipes, HTTP, files), `gateways`
(between clients and services) and `drift` (recordings against the live services). They share
`driver` (the one loop that plays cases), `results` (the contents of a results file), `forms` (files
and messages against the JSON Schemas here) and `case_names`. `reports` and `site` are made from
results files alone.

For others: `Piped` makes an accumulator of the kit from a runner program, for tests in Python;
`cuts` cuts streams for such an accumulator; `site.build_site` and `reports.comparison.diff`.
"""

from __future__ import annotations

from mockllm.conformance.clients.runner import Piped

__all__ = ["Piped"]
