"""The arguments of each program: the model's URL, the prompt, and the MCP servers."""

import json
import sys

SECONDS = 5
"""The timeout of a call, where the library has one."""


def given() -> tuple[str, str, dict[str, str | list[str]]]:
    """The root of the model's URL, the prompt, and by its name each server: a URL or a command."""
    url, prompt, servers = sys.argv[1:]
    return url, prompt, json.loads(servers)
