"""Redaction, recording and importers."""
