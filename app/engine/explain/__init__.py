"""Explanations of the numbers: the cost model, advice, verdicts, other programs' command lines.

`cost.py` is the glossary's cost model from measured values, with break-even and best k. `advice.py` says in
a sentence what the numbers mean, and what to change: each `Remedy` carries the strategy or load options that
a button needs. `facts.py` is what is known of an answer, and judges a draft by its share of the target's
size. `llama_command.py` writes the settings as llama.cpp's or vLLM's command line and names those without a
flag there; `explained.py` explains what people have: `server_command.py` reads llama.cpp's commands
(`llama_flags.py` has the names of its flags), `server_log.py` logs and lines of statistics. `decision.py`
recomputes the numbers behind each verdict of a round, and `copied.py` finds where a copied draft stands.
`what_if.py` tells the rounds that a recorded answer would have had with other draft settings, exactly where
the record decides that.
"""
