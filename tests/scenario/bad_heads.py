# ruff: noqa: E501 - messages are compared whole, and are as long as they are
"""Documents with a wrong shape above their turns, with all their problems."""

from __future__ import annotations

from tests.scenario.documents import APIS, Row, top

HEADS: list[Row] = [
    (
        "no name",
        "turns:\n  - reply: {text: hi}\n",
        [
            "1:1: needs the key 'scenario'",
        ],
    ),
    (
        "no turns",
        "scenario: a\n",
        [
            "1:1: needs the key 'turns'",
        ],
    ),
    (
        "turn typo",
        "scenario: a\nturn:\n  - reply: {text: hi}\n",
        [
            "2:1: unknown key 'turn'; did you mean 'turns'?",
        ],
    ),
    (
        "no turns at all",
        "scenario: a\nturns: []\n",
        [
            "2:8: turns: must have at least one turn",
        ],
    ),
    (
        "turns map",
        "scenario: a\nturns: {reply: {text: hi}}\n",
        [
            "2:8: turns: must be a list of turns, got a mapping; each begins with '- '",
        ],
    ),
    (
        "bad name",
        "scenario: Two Tools\nturns:\n  - reply: {text: hi}\n",
        [
            "1:11: scenario: must be a name of lower-case letters, digits and '-', such as two-tools, got Two Tools",
        ],
    ),
    (
        "unknown key",
        top("colour: red"),
        [
            "2:1: unknown key 'colour'; known here: scenario, description, route, socket, apis, match, priority, mcp, tools, seed, defaults, obey, include, replies, template, turns, then, in_order, ids",
        ],
    ),
    (
        "a cassette",
        "interactions: []\nversion: 1\n",
        [
            "1:1: needs the key 'scenario'",
            "1:1: needs the key 'turns'",
            "1:1: unknown key 'interactions'; this is a cassette: serve it with --cassettes, or import it with mockllm import",
            "2:1: unknown key 'version'; known here: scenario, description, route, socket, apis, match, priority, mcp, tools, seed, defaults, obey, include, replies, template, turns, then, in_order, ids",
        ],
    ),
    (
        "typo",
        top("descripton: red"),
        [
            "2:1: unknown key 'descripton'; did you mean 'description'?",
        ],
    ),
    (
        "description",
        top('description: "two\\nlines"'),
        [
            '2:14: description: must be a string in one line, got "two\\nlines"',
        ],
    ),
    (
        "description empty",
        top("description:"),
        [
            "2:13: description: must be a string, got nothing",
        ],
    ),
    (
        "apis",
        top("apis: [chat, respones]"),
        [
            f"2:14: apis[1]: must be one of {APIS}, got respones; did you mean 'responses'?",
        ],
    ),
    (
        "apis one",
        top("apis: chat"),
        [
            "2:7: apis: must be a list of apis, got chat",
        ],
    ),
    (
        "apis twice",
        top("apis: [chat, chat]"),
        [
            "2:7: apis: must name each api once",
        ],
    ),
    (
        "apis none",
        top("apis: []"),
        [
            "2:7: apis: must be a list of apis, got an empty one",
        ],
    ),
    (
        "seed",
        top("seed: 1.5"),
        [
            "2:7: seed: must be a string, got 1.5; put it in quotes to make it one",
        ],
    ),
    (
        "then",
        top("then: stop"),
        [
            "2:7: then: must be restart, got stop",
        ],
    ),
    (
        "default split",
        top("defaults: {split: [a, b]}"),
        [
            "2:19: defaults.split: must be a rule for any value; fragments belong to one value alone",
        ],
    ),
    (
        "defaults",
        top("defaults: {every: 20}"),
        [
            "2:19: defaults.every: must be a duration such as 300ms, 2s, 500us or 1m, got 20; say the unit",
        ],
    ),
    (
        "defaults unit",
        top("defaults: {every: 20mss}"),
        [
            "2:19: defaults.every: must be a duration such as 300ms, 2s, 500us or 1m, got 20mss",
        ],
    ),
    (
        "jitter",
        top("defaults: {jitter: 0.2}"),
        [
            "2:20: defaults.jitter: must be a percentage from 0% to 100%, such as 20%, got 0.2",
        ],
    ),
    (
        "jitter more",
        top("defaults: {jitter: 120%}"),
        [
            "2:20: defaults.jitter: must be a percentage from 0% to 100%, such as 20%, got 120%",
        ],
    ),
    (
        "usage",
        top("defaults: {usage: {inputs: 5, output: -1}}"),
        [
            "2:20: defaults.usage: unknown key 'inputs'; did you mean 'input'?",
            "2:39: defaults.usage.output: must be a whole number from 0 to 1000000000, got -1",
        ],
    ),
    (
        "match",
        top("match: all"),
        [
            "2:8: match: must be 'any', or a mapping with the keys model, user, user_files, system, tools, headers, query, body, stream, any, all, not, ignore, got all; a text of the user is 'match: {user: TEXT}'",
        ],
    ),
    (
        "match empty",
        top("match: {}"),
        [
            "2:8: match: must have a condition; 'any' answers whatever nothing else does",
        ],
    ),
    (
        "match list",
        top("match: [user]"),
        [
            "2:8: match: must be a mapping with the keys model, user, user_files, system, tools, headers, query, body, stream, any, all, not, ignore, got a list",
        ],
    ),
    (
        "match bool",
        top("match: {user: true}"),
        [
            "2:15: match.user: must be a string, got true; put it in quotes to make it one",
        ],
    ),
    (
        "match files empty",
        top("match: {user_files: []}"),
        [
            "2:21: match.user_files: must be a list of digests, URLs, ids or media types, got an empty one",
        ],
    ),
    (
        "match files digest",
        top("match: {user_files: [image/*, sha256:AB]}"),
        [
            "2:31: match.user_files[1]: must be sha256: and 64 hexadecimal digits in lower case, got sha256:AB",
        ],
    ),
    (
        "match files count",
        top("match: {user_files: {count: {least: 3, most: 2}, type: image, digest: sha256:AB}}"),
        [
            "2:29: match.user_files.count: can never hold: at least 3 and at most 2",
            "2:56: match.user_files.type: must be a media type, such as image/*, got image",
            "2:71: match.user_files.digest: must be sha256: and 64 hexadecimal digits in lower case, got sha256:AB",
        ],
    ),
    (
        "match files counted",
        top("match: {user_files: {}}"),
        [
            "2:21: match.user_files: must have one of the keys count, type, digest",
        ],
    ),
    (
        "match files bounds",
        top("match: {user_files: {count: {}}}"),
        [
            "2:29: match.user_files.count: must have one of the keys least, most",
        ],
    ),
    (
        "match any text",
        top("match: {user: {any: []}, system: {not: [a]}}"),
        [
            "2:21: match.user.any: must be a list of conditions, got an empty one",
            "2:40: match.system.not: must be a string, got a list; one of several is {any: [...]}, each of them {all: [...]}",
        ],
    ),
    (
        "match groups",
        top("match: {any: {user: a}, all: [{}, {usr: a}], not: [{user: a}]}"),
        [
            "2:14: match.any: must be a list of mappings of conditions, got a mapping",
            "2:31: match.all[0]: must have a condition",
            "2:36: match.all[1]: unknown key 'usr'; did you mean 'user'?",
            "2:51: match.not: must be a mapping with the keys model, user, user_files, system, tools, headers, query, body, stream, any, all, not, got a list",
        ],
    ),
    (
        "match group ignore",
        top("match: {not: {user: a, ignore: [uuid]}}"),
        [
            "2:32: match.not.ignore: belongs to the whole 'match', not to a part of it",
        ],
    ),
    (
        "match ignore",
        top("match: {user: x, ignore: [uid, $.a b, /(/, 5]}"),
        [
            "2:27: match.ignore[0]: must be uuid, timestamp, date, cwd, home, tmp, hostname, user, git, a path such as $.metadata, or a /regular expression/, got 'uid'; did you mean 'uuid'?",
            "2:32: match.ignore[1]: is no path that is known here; such are $.user, $.metadata['user id'], $.messages[*].name, $.input[0] and $..email",
            "2:39: match.ignore[2]: must be a regular expression of Python; missing ), unterminated subpattern at position 0",
            "2:44: match.ignore[3]: must be a string, got 5; put it in quotes to make it one",
        ],
    ),
    (
        "match op",
        top("match: {user: {contain: x}}"),
        [
            "2:16: match.user: unknown key 'contain'; did you mean 'contains'?",
        ],
    ),
    (
        "match ops",
        top("match: {user: {contains: x, regex: y}}"),
        [
            "2:15: match.user: must have exactly one key, of contains, equals, regex, hidden, any, all, not",
        ],
    ),
    (
        "match no op",
        top("match: {user: {}}"),
        [
            "2:15: match.user: must have exactly one key, of contains, equals, regex, hidden, any, all, not",
        ],
    ),
    (
        "tools",
        top("match: {tools: [get weather]}"),
        [
            "2:17: match.tools[0]: must be a tool name: 1 to 64 letters, digits, '_' or '-', or SERVER.TOOL for a tool of an MCP server, got get weather",
        ],
    ),
    (
        "headers",
        top("match: {headers: {'a b': x}}"),
        [
            "2:19: match.headers: 'a b' cannot be the name of an HTTP header",
        ],
    ),
    (
        "match body",
        top("match: {body: hello}"),
        [
            "2:15: match.body: must be a mapping, got hello",
        ],
    ),
    (
        "tool name",
        top("tools: [{name: get weather}]"),
        [
            "2:16: tools[0].name: must be a tool name: 1 to 64 letters, digits, '_' or '-', got get weather",
        ],
    ),
    (
        "tool no name",
        top("tools: [{description: x}]"),
        [
            "2:9: tools[0]: needs the key 'name'",
        ],
    ),
    (
        "tool list",
        top("tools: {name: f}"),
        [
            "2:8: tools: must be a list of tools, got a mapping",
        ],
    ),
    (
        "schema type",
        top("tools: [{name: f, parameters: object}]"),
        [
            "2:31: tools[0].parameters: must be a mapping, got object",
        ],
    ),
]
