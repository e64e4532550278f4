"""Whether recordings are still true: the live services' answers compared with them, by shape.

`shapes` is the shape of JSON values and `answers` that of an exchange; `known` is what the encoders
of mockllm send, `witness` what the types of an SDK have. `compare` finds the differences,
`selection` chooses what is sent again, `destinations` where and with which key, `report` shows what
was found; all these are pure. `live` sends the requests, and `run` reads and writes recordings.
"""
