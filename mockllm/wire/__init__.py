"""The bytes of the APIs: how they travel, and what they mean.

Here live the carriers of frames and one package for each API. Pure: bytes go in and come out; no
I/O, no clock, no randomness. It imports `core` alone: no scenario, no server.

For others:

- `framing`: `carrier` (what each carrier has), the carriers themselves (`sse`, `ndjson`,
  `json_array`, `eventstream`), and `content_coding`
- `protocols`: the table `PROTOCOLS`; `base` and `records` say what a protocol has. Only the quirks
  of an API import from inside of its package
- `protocols.checks`, `environment`, `extra`, `jobs`, `route_matching`, `values`, `writing`: what
  works on any protocol
"""
