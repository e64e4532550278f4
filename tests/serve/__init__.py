"""The server, interception and the live page."""
