"""Faults: what breaks between a service and its client.

`transmission` has what travels, `breaking` applies faults to it, `places` finds where they strike
in the events that `events` reads. Pure: bytes, times and endings go in and come out. The language
of faults is in `mockllm.scenario.reading.faults`.
"""
