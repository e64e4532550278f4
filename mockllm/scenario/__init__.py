"""The scenario language: its model, and YAML to the model (`load`) and back (`dump`).

It knows no protocol and no quirk: `load` is handed their names as a `Vocabulary`. What a scenario
plays is worked out in `mockllm.replay.compilation.resolve`.
"""
