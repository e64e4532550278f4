"""MCP servers beside the model: from a JSON-RPC message to its answer. Pure.

`rpc` reads messages of both eras: that of a handshake and a session, and the stateless one.
`operations` finds the entry of a scenario or server that answers, and makes the result.
`tool_names` finds which tool of which server a name means that a model is offered.
"""
