"""Cases: a stream, and the outcome that a correct client reaches at its end. Pure."""
