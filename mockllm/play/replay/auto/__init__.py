"""Answers that are made from the request alone: `auto` replies and samples of schemas."""
