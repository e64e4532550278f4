"""The server: `app` listens, `handler` is the way of a request, `answers` finds who answers it, and
`http` writes."""
