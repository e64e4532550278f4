"""Traffic of clients that know no base URL: a forward proxy, its certificates, and what leads
programs to it.

A program in a process of its own is led by its environment (`child`) to the forward proxy
(`forward_proxy`), which ends TLS with a certificate of its own (`authority`). In this process the
HTTP libraries themselves are redirected (`transports`). Either way the server gets the request with
its origin, and the client sees the URL that it asked for.
"""
