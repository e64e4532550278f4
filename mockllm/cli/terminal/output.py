"""The one way in which commands print text."""

from __future__ import annotations

import sys

import click

from mockllm.core.text import printable_lines


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints text, most of which others wrote: what a terminal would obey in it is escaped.

    Args:
        err: on standard error, not on standard output.
        nl: with a line end after it.
    """
    click.echo(printable_lines(text), err=err, nl=nl)


def write_bytes(data: bytes) -> None:
    """Writes bytes to standard output as they are; on a terminal, as text that is escaped."""
    if sys.stdout.isatty():
        echo(data.decode("utf-8", "backslashreplace"), nl=False)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
