"""Faults: what breaks between a service and its client.

`transmission` has what travels. `strikes` says what a fault does at its place, which `places` finds
in the events of a stream; `breaking` applies faults to a whole answer, `live` to one that
arrives. Pure: bytes, times and endings go in and come out. The language of faults is in
`mockllm.scenario.reading.faults`.
"""
