"""From a request to the bytes of its answer.

Here lives what selects the turn that answers, what plays it, and what changes the answer on the
way: quirks and faults. It opens no socket and reads no clock: times are arguments. Single modules
read files (scenarios, tapes, bodies, samples of times); `pyproject.toml` names them.

For others:

- `replay`: `loading` (`load`, `loads`), `player` with `call` and `decision`, `sessions`, `jobs`
- `matching`: `index`, `select`, `conversation`, `fingerprint`, `mismatch`
- `agents`: `known_agents`, the coding agents that are recognised
- `tapes`: `captured` (an exchange as it went over the wire) and `recorded_turn`
- `quirks`: the table `QUIRKS`; `faults`: `strikes`, `breaking` and `live`
"""
