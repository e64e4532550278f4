"""Carriers and protocols."""
