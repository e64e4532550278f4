"""The live page in a real Chromium."""
