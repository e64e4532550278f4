"""The attachment of a client: over pipes, over HTTP, by a file with its answers, or as a function.

`runner` runs cases through any of them; `messages` is the protocol of runner programs.
"""
