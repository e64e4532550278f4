"""Gateways, judged: mockllm is the client in front of one and the service behind it.

`cases` says what the client sends and the model answers, `reading` what came out; `answer_rules`
and `request_rules` judge both directions. These are pure. `program` is the gateway's
process, `check` plays the cases as its client, and `gateway_run` is the service, and plays them
without a gateway first.
"""
