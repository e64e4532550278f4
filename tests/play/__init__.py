"""From a request to the bytes of its answer."""
