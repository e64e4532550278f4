"""Frames to bytes and back, and decompression of HTTP content codings. Pure."""
