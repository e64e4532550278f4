"""Clients, gateways and recordings that are judged, results files, and reports."""
