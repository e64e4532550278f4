"""Conformance: a client in any language is judged by the checking kit, and reports are drawn.

`messages` is the protocol of runners, `results` is what a results file holds. Reports are made from
results files alone.

`Piped` makes an accumulator of the kit from a runner program, for tests in Python.
"""

from __future__ import annotations

from mockllm.conformance.attachments.runner import Piped

__all__ = ["Piped"]
