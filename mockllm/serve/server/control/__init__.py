"""Requests about the server itself: its control routes, its figures, its front page."""
