"""Experiments: measurements in runs, and their report files. No Qt.

`Experiment` → `Runner` (one engine home; journal and traces on disk) → `RunRecord` → `Report`. CSV, Markdown
and HTML are functions of a `Report`; every number of the page can be recomputed from its embedded runs.
`axes.py` lists what can be varied, and makes a lane of each cell of a sweep. `drafts.py` ranks draft files by
teacher forcing, without runs. `audit.py` yields requests and passes to run, and returns whether drafting
changed an answer; `audit_page.py` is the page with the evidence.
"""
