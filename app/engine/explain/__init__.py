"""Explanations of the numbers: the cost model, advice, verdicts, other programs' command lines.

`cost.py` is the glossary's cost model from measured values, with break-even and best k. `advice.py` says what
the numbers mean and what to change: each `Remedy` carries the strategy or load options for a button.
`facts.py` collects the facts of an answer, names the cause that they show, and judges a draft by its share of
the target's size.
`llama_command.py` writes the settings as llama.cpp's or vLLM's command line, and names those without a flag.
`explained.py` explains pasted texts: `server_command.py` reads llama.cpp's commands (flag names:
`llama_flags.py`), `server_log.py` logs and statistics lines. `decision.py` recomputes the numbers behind each
verdict, and `copied.py` finds the source of a copied draft. `what_if.py` finds the rounds of a recorded
answer under other draft settings: exact if the record decides them, else estimated.
"""
