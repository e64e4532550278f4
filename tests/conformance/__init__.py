"""Real clients, each as a `Run` of the checking kit: the outcomes of streams, without repairs."""
