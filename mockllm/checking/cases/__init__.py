"""Cases: a stream, and the outcome that a correct client has at its end. Pure."""
