# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Documents that are broken as YAML, with all their problems."""

from __future__ import annotations

from tests.scenario.documents import Row, part, top

YAML: list[Row] = [
    (
        "syntax",
        "scenario: a\nturns: [\n",
        [
            "3:1: not valid YAML: a { or [ is not closed, or a comma is missing (did not find expected node content)",
        ],
    ),
    (
        "colon",
        "scenario: a: b\n",
        [
            "1:12: not valid YAML: a text with : { } [ ] ' \" * & or # needs quotes (mapping values are not allowed in this context)",
        ],
    ),
    *(
        (
            f"text with {text}",
            f"scenario: a\nturns:\n  - reply: {text}\n",
            [
                f"{where}: not valid YAML: a text with : {{ }} [ ] ' \" * & or # needs quotes ({why})",
            ],
        )
        for text, where, why in [
            ("{text: a: b}", "3:20", "did not find expected ',' or '}'"),
            ("{text: {x} is}", "3:23", "did not find expected ',' or '}'"),
            ("{text: 'it's'}", "3:23", "did not find expected ',' or '}'"),
            ("{text: it costs #5 here}", "4:1", "did not find expected ',' or '}'"),
            ("*bold*", "3:17", "did not find expected alphabetic or numeric character"),
            ('"say "hi""', "3:18", "did not find expected key"),
            ("a: b", "3:13", "mapping values are not allowed in this context"),
        ]
    ),
    (
        "tab",
        "scenario: a\nturns:\n\t- x\n",
        [
            "3:1: not valid YAML: nothing may begin with '\\t' here; indent with spaces",
        ],
    ),
    (
        "at",
        part("text: @x"),
        [
            "3:19: not valid YAML: nothing may begin with '@' here; put the value in quotes",
        ],
    ),
    (
        "control",
        part('text: "\x07"'),
        [
            '3:20: not valid YAML: U+0007 may not stand as it is; in double quotes write it as an escape, "\\x1b"',
        ],
    ),
    (
        "beyond Unicode",
        part('text: "\\U00110000"'),
        [
            "3:22: not valid YAML: an escape names no character; the last one is \\U0010FFFF",
        ],
    ),
    (
        "lone",
        part('text: "\ud800"'),
        [
            "3:20: half of a surrogate pair is no character",
        ],
    ),
    (
        "alias",
        part("text: *nowhere"),
        [
            "3:19: turns[0].reply.text: alias *nowhere has no anchor &nowhere complete before it",
        ],
    ),
    (
        "selfalias",
        "scenario: a\nturns: &t [*t]\n",
        [
            "2:12: turns[0]: alias *t has no anchor &t complete before it",
        ],
    ),
    (
        "python tag",
        part("text: !!python/object/apply:os.system [ls]"),
        [
            "3:19: turns[0].reply.text: tag !!python/object/apply:os.system is not allowed; scenarios are plain data",
        ],
    ),
    (
        "tag",
        part("text: !secret hi"),
        [
            "3:19: turns[0].reply.text: tag !secret is not allowed; scenarios are plain data",
        ],
    ),
    (
        "merge",
        "<<: 5\n" + top(""),
        [
            "1:5: '<<' must merge a mapping",
        ],
    ),
    (
        "list key",
        "[a]: 5\n" + top(""),
        [
            "1:1: a key must be a name",
        ],
    ),
    (
        "empty key",
        ": 5\n" + top(""),
        [
            "1:1: not valid YAML: the line is indented otherwise than those that it belongs to (did not find expected key)",
        ],
    ),
    (
        "twice",
        part("text: hi, text: ho"),
        [
            "3:23: turns[0].reply: key 'text' is written twice; first on line 3",
        ],
    ),
    (
        "empty",
        "",
        [
            "1:1: holds no scenario; one begins with 'scenario: NAME' and has 'turns'",
        ],
    ),
    (
        "comment",
        "# nothing yet\n",
        [
            "1:1: holds no scenario; one begins with 'scenario: NAME' and has 'turns'",
        ],
    ),
    (
        "empty doc",
        top("") + "---\n",
        [
            "6:1: the document is empty; a scenario begins with 'scenario: NAME' and has 'turns'",
        ],
    ),
    (
        "list",
        "- a\n",
        [
            "1:1: must be a mapping; a scenario begins with 'scenario: NAME' and has 'turns'",
        ],
    ),
    (
        "scalar",
        "hello\n",
        [
            "1:1: must be a mapping; a scenario begins with 'scenario: NAME' and has 'turns'",
        ],
    ),
]
