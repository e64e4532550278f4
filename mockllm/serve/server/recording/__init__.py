"""The recording proxy: requests to the real services, copies of their answers, and the worker that
redacts and writes them."""
