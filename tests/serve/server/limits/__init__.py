"""What the clients of a server may use."""
