"""Whether output is in colour: NO_COLOR and FORCE_COLOR say so; else a terminal has colours."""

from __future__ import annotations

import os
from typing import TextIO


def in_colour(stream: TextIO) -> bool:
    """Whether a stream gets colours. An empty variable says nothing (https://no-color.org); both
    together mean no colours."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()
