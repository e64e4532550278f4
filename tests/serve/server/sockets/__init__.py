"""WebSockets of clients, played."""
