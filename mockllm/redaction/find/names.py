"""The names in `names.json`, which says what they mean."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

NAMES: dict[str, Any] = json.loads(
    (files(__package__ or "") / "names.json").read_text(encoding="utf-8")
)
