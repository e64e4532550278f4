"""Gateways, judged: mockllm is the client in front of one and the service behind it.

`cases` says what the client sends and the model answers, `reading` what came out; `answer_rules`
and `request_rules` judge both directions. These are pure. `upstream` is the service, `client` the
client, `program` the gateway's process, and `check` runs the cases: without a gateway first.
"""
