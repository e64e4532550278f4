"""Headings of the options in the help of servers."""

from __future__ import annotations

import click

HEADINGS = {
    "Answers": ("scenarios", "cassettes", "speed", "fallback", "strict", "quirk", "match-ignore"),
    "Times": ("latency", "profile", "max-concurrent", "queue"),
    "Faults": ("fault", "fault-rate", "fault-seed", "quota"),
    "Recording": (
        "record",
        "output",
        "upstream",
        "match",
        "redact",
    ),
    "Coding agents": ("agent", "timeout"),
    "Interception": ("proxy", "proxy-port", "intercept", "tunnel"),
    "Listening": (
        "host",
        "port",
        "tls",
        "path",
        "allow-host",
        "allow-origin",
        "max-body",
        "grace",
    ),
    "Log and pages": ("log-format", "quiet", "ui"),
    "Many processes": ("workers", "state", "reload"),
}
"""The long names of the options under each heading, in the order of the help."""


class ServerCommand(click.Command):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = {}
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None and isinstance(parameter, click.Option):
                rows[long_name(parameter)] = row
        for heading, names in HEADINGS.items():
            if listed := [rows.pop(name) for name in names if name in rows]:
                with formatter.section(heading):
                    formatter.write_dl(listed)
        with formatter.section("Other"):
            formatter.write_dl([*rows.values()])


def long_name(parameter: click.Parameter) -> str:
    """The first long name of an option, without its dashes; "" for an argument."""
    names = (name.removeprefix("--") for name in parameter.opts if name.startswith("--"))
    return next(names, "")
