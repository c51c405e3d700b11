"""The fault campaign: damaged and hostile files by the thousand, by `make faults`.

`damage.py` damages bytes and JSON by a seed, `gguf_damage.py` the numbers that a model's head tells;
`campaign.py` runs a kind of file through everything that opens it and counts what became of it. Kinds of
files are `models.py`, `saved.py` and `templates.py`; kinds of plans, of what happens to a running program,
are `deaths.py` (of engines), `downloads.py`, `disks.py`, `memory.py` and those in `window/`. Whatever comes,
the program must open it, say what is damaged, or refuse it in a sentence. A file that failed once is in
`corpus/KIND/` and is tried first, here and by `make test`, which also takes a few seeds of each kind.

    python -m tests.faults [N] [--only KIND ...] [--first SEED]
"""
