"""What the services can send, by the types of their SDKs, and what mockllm's encoders send.

`roots` names the types of each SDK: of a stream's events and of a body, those of betas too. `sent`
plays the kit's scenarios and those of `probes/` and notes which events, items, fields and values of
enumerations the encoders send. For the rest, `reasons/` says why mockllm does not send it. A new
release of an SDK has items in neither: `python -m tools.unions` lists them, and the test of this
tool fails.

Unlike in `tools.coverage`, frames that a scenario writes out do not count: those can be anything.
"""
