"""The report: static pages made from results files alone. They need no network and no server.

`build_site` writes a folder of pages, `overview_page` gives one page that stands alone. Templates
and the script are written by hand; Jinja2 escapes every value.
"""

from __future__ import annotations

from mockllm.conformance.site.building import build_site, overview_page

__all__ = ["build_site", "overview_page"]
