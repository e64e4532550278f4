"""Tests of coding agents that are started, by programs that stand for them."""
