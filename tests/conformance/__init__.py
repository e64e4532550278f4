"""Real clients, each as a `Run` of the checking kit: what they make of a stream, unrepaired."""
