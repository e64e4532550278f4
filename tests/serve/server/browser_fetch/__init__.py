"""Pages in a real browser that call the server from another origin."""
