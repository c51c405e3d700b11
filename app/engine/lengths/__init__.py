"""Draft length rules: how many tokens a round drafts. Each has a file and a line in `registry.py`.

- `fixed` is the strategy's own parameter.
- `ewma` moves k between the strategy's bounds with the smoothed acceptance.
- `auto` picks the k, possibly 0, that gives most tokens a second. It uses the measured costs of a draft token
  and of target passes by size, and the running acceptance. Times of each size are shrunk towards a line
  through all sizes: else the luckiest would often win. A ledger limits what drafting may lose to a small
  share of the answer. Losses include probes, the draft's reading of the prompt, the time of the rule's own
  choices and what learning the text costs.
"""
