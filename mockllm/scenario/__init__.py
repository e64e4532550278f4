"""The scenario language: its model, and YAML to the model (`load`) and back (`dump`).

Here lives what a scenario file may say: the model, its reading with places for errors, and the JSON
Schema. For others: the models (`model`, `part_model`, `route_model`, `fault_model`,
`latency_model`), `load`, `dump`, `precedence`, `templates`; `reading` is for `load`, and its tables
for options and headers that say the same.

It knows no protocol and no quirk: `load` is handed their names as a `Vocabulary`. What a scenario
plays is worked out in `mockllm.play.replay.compilation.resolve`.
"""
