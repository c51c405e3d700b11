"""Experiments: what is measured in runs, and the files they are reported in. No Qt.

`Experiment` → `Runner` (one engine home; journal and traces on disk) → `RunRecord` → `Report`. CSV, Markdown
and HTML are functions of a `Report`, and every number in the page can be recomputed from the runs that are
embedded in it. `axes.py` says what can be varied, and makes a lane of each cell of a sweep. `drafts.py` ranks
draft files by teacher forcing, without runs. `audit.py` yields what is to be answered and judged
again, and returns whether drafting changed an answer; `audit_page.py` is the page with the evidence.
"""
