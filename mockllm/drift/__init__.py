"""Whether recordings are still true: the live services' answers compared with them, by shape.

`shapes` is the shape of JSON values and `answers` that of an exchange; `known` is what the encoders
of mockllm send, `witness` what the types of an SDK have. `compare` finds the differences, `asked`
chooses what is asked again, `report` says it; all these are pure. `asking` sends the requests.
"""
