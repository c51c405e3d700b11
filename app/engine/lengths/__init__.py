"""Draft length rules: how many tokens a round drafts. Each has one file, and one line in `registry.py`.

- `fixed` is the strategy's own parameter.
- `ewma` moves k between the strategy's bounds with the smoothed acceptance.
- `auto` picks the k that gives the most tokens a second, zero included, from the measured cost of a draft
  token, the measured cost of target passes by size, and the running acceptance. Times of one size are drawn
  towards a line through all sizes, or the shortest would often win by luck. A ledger keeps what drafting has
  lost, which may never exceed a small share of the answer: probes, the draft's reading of the prompt and the
  time of its own choices included.
"""
