"""The addresses of the project: the one setting for them. "" as long as there is none.

hatch_build.py reads them for `project.urls` and the README on a package index, tools/docs_site.py
for the site, and every message that names a page asks `page`.
"""

from __future__ import annotations

SITE = ""
"""The address of the documentation, without a slash at the end."""

REPOSITORY = ""
"""The address of the source, without a slash at the end."""


def page(name: str, anchor: str = "") -> str:
    """Where a page is: its address or, without a site, the command that prints it."""
    if not SITE:
        return f"`mockllm docs {name}`"
    return f"{SITE}/{name}/#{anchor}" if anchor else f"{SITE}/{name}/"
