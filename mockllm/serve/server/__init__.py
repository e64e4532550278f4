"""The server: `app` listens, `answers` decides who answers a request, `handler` what becomes of it,
`http` writes."""
