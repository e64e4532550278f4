"""Tables of the package that are data, in YAML beside the modules that read them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def read_table(path: str, package: str) -> Any:
    """The value of a YAML file, by its path below a package."""
    text = files(package).joinpath(path).read_bytes()
    return yaml.load(text, _LOADER)  # noqa: S506 - a safe one
