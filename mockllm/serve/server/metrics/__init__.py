"""Figures that a server counts about itself, and their text for Prometheus.

`histogram` counts values in classes; `figures` has all that is counted, and when a timed answer was
due and when it was written; `by_model` what is counted of each model; `names` shows the figures as
text, under the names that are asked for.
"""
