"""The wire protocols; `PROTOCOLS` is the table of them all."""
