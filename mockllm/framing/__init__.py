"""Frames to bytes and bytes to frames, and the content codings that HTTP puts around them. Pure."""
