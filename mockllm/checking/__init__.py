"""Checks of what was recorded against what mockllm makes of it: no asyncio, no pytest in here.

`corpus` examines recorded streams, `masking` says what of an event a service makes up, `sdks`
plays bytes to the official client libraries and compares what they add up to.
"""
