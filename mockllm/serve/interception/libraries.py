"""Data about the libraries that are changed. Only data may live here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LED = "_mockllm_led"
"""The attribute of a connection, or of what makes connections, that was redirected."""

OWN_METHODS: dict[type, tuple[str, Callable[..., Any]]] = {}
"""By class, the name of a method that other mocks replace, and the library's own."""
