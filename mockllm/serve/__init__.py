"""Sockets: the server, the traffic that is led to it, and its live page.

Here lives what listens, sends, waits and shares state between processes. What an answer consists of
is decided in `play`, and what is kept of an exchange in `record`.

For others:

- `server`: `app` (`MockServer`), `options` (`ServerOptions`), `thread` (`ServerThread`), `state`
- `interception`: `hosts`, `patches` and `ownership` (HTTP libraries of this process, and whose
  requests they make), `child` (the environment of a program)
- `ui`: `live_page`, which is handed to a server. The server does not know it
"""
