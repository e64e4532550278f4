# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Branches, choices and templates that cannot be, with all their problems."""

from __future__ import annotations

from tests.scenario.documents import Row, turn, two

BRANCHES: list[Row] = [
    (
        "go to nowhere",
        "scenario: a\nturns:\n  - {name: end, reply: {text: a}, go_to: ende}\n  - {name: start, reply: {text: b}}\n",
        ["3:42: turns[0].go_to: no turn has the name 'ende'; did you mean 'end'?"],
    ),
    (
        "two of one name",
        "scenario: a\nturns:\n  - {name: x, reply: {text: a}, go_to: x}\n  - {name: x, reply: {text: b}}\n",
        ["4:12: turns[1].name: 'x' is the name of an earlier turn"],
    ),
    (
        "name of a turn",
        turn("{name: The End, reply: {text: a}}"),
        [
            "3:12: turns[0].name: must be a name of lower-case letters, digits and '-', such as goodbye, got The End",
        ],
    ),
    (
        "one reply to choose from",
        turn("{one_of: [{text: a}]}"),
        ["3:14: turns[0].one_of: must be a list of at least two replies, got a list"],
    ),
    (
        "reply and choice",
        turn("{reply: {text: a}, one_of: [{text: b}, {text: c}]}"),
        ["3:5: turns[0]: must have either 'reply' or 'one_of', got both"],
    ),
    (
        "choice without a reply",
        turn("{one_of: [{text: b}, {weight: 2}]}"),
        ["3:26: turns[0].one_of[1]: needs a 'reply', or 'http' for an error"],
    ),
    (
        "weight",
        turn("{one_of: [{text: b}, {weight: 0, reply: {text: c}}]}"),
        ["3:35: turns[0].one_of[1].weight: must be a whole number from 1 to 1000000, got 0"],
    ),
    (
        "same conditions twice",
        turn(
            "{reply: {text: a}, when: [{user: x, reply: {text: b}}, {user: x, reply: {text: c}}]}"
        ),
        ["3:60: turns[0].when[1]: is the second for the same conditions; make one of the two"],
    ),
    (
        "results of no call in a branch",
        two("{reply: {text: a}, when: {results: {c9: x}, reply: {text: b}}}"),
        [
            "4:45: turns[1].when.results.c9: is the result of no call in the turns before; known: c1, c2",
        ],
    ),
    (
        "malformed template",
        turn("{template: true, reply: {text: 'a {{ request.usr }}'}}"),
        [
            "3:36: turns[0].reply.text: {{ request.usr }} asks 'request' for 'usr'; did you mean 'user'?",
        ],
    ),
    (
        "groups that no condition has",
        "scenario: a\nmatch: {user: {regex: '(?P<city>x)'}, not: {user: {regex: '(?P<no>y)'}}}\n"
        "template: true\nturns:\n  - {reply: {text: '{{ match.city }} {{ match.no }} {{ match }}'}}\n",
        [
            "5:20: turns[0].reply.text: {{ match }} needs the name of a group (?P<name>...) of a condition; there are: city",
            "5:20: turns[0].reply.text: {{ match.no }} needs the name of a group (?P<name>...) of a condition; there are: city",
        ],
    ),
    (
        "malformed template in arguments",
        turn("{template: true, reply: [{text: x}, {tool: f, arguments: {a: ['{{ x }}']}}]}"),
        [
            "3:67: turns[0].reply[1].arguments.a[0]: {{ x }} begins with 'x'; a path begins with one of request, call, calls, result, results, turn, match",
        ],
    ),
    (
        "fragments of a template",
        turn("{template: true, reply: {text: '{{ turn }}', split: ['{{ turn', ' }}']}}"),
        [
            "3:57: turns[0].reply.split: must be a rule: fragments cannot have values put in",
        ],
    ),
    (
        "fragments of a template in the input of a service's tool",
        turn(
            "{template: true, reply: [{server_tool: web, input: {q: '{{ turn }}'}, "
            "split: ['{\"q\":\"{{ turn', ' }}\"}']}]}"
        ),
        [
            "3:82: turns[0].reply[0].split: must be a rule: fragments cannot have values put in",
        ],
    ),
    (
        "repeat and go on",
        "scenario: a\nturns:\n  - {name: x, reply: {text: a}, repeat: true, go_to: x}\n",
        ["3:54: turns[0].go_to: cannot go with 'repeat: true': the turn answers without end"],
    ),
]
