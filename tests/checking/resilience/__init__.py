"""Tests of the rules of resilience."""
