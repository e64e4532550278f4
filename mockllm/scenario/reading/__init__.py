"""From the text of a scenario to its model, as `load` runs it.

`files` finds texts, `nodes` parses YAML to trees with places, `values` reads one value of a tree,
and the modules named after parts of the language read these parts. Only `files` does I/O.
"""
