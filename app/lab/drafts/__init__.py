"""Which draft is best for a target, without runs: `trials.py` ranks files by teacher forcing
(`engine/forcing.py`), `columns.py` says what is shown of each, `kept.py` keeps what was found.
"""
