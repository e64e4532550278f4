"""The page about an audit of cassettes."""

from __future__ import annotations

from mockllm.conformance.site import inline_files
from mockllm.conformance.site.rendering import environment
from mockllm.record.audit import Audit, age_line, audit_json, audit_lists


def audit_page(audit: Audit) -> str:
    """One page that stands alone."""
    values = audit_json(audit)
    template = environment().get_template("audit.html")
    return template.render(
        audit=audit,
        summary=values["summary"],
        date=values["date"],
        lists=audit_lists(audit)[1:],
        age=age_line(audit),
        inline=inline_files(),
        root="",
    )
