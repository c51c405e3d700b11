"""From a row of logits to a drawn token: filters, distributions, draws.

- Rows are lazy (`rows.py`): nothing is computed after a rejected token.
- Rows contain only what the filters leave (`distribution.py`): a few ids with their p. Verification,
  residual, draws and sampled drafts work on those. `sampler.py` finds them by bounds (`logits.py`: maxima of
  groups) without sorting the vocabulary. `tests/dense.py` has the sorted form as reference.
- XTC's own draw is summed out: tokens are drawn from the mixture of both cases.
- Rows of a whole vocabulary reuse memory (`RowStore`): fresh pages cost more than writing to them.
- Tokens are drawn by noise (`noise.py`): the largest log p + luck wins, and a token's luck depends on the key
  and its id alone. So rows that differ by rounding nearly always give the same token; intervals of a
  cumulative sum would not. A draft that draws with the target's luck draws the target's token more often.
- Compiled C helpers (`kernel.c`, loaded by `kernel.py`) take a third to a half of numpy's time. They do
  exponentials, probabilities, largest values, top-k, top-p, min-p and draws, in one call a row. Without a
  compiler numpy is used; tests run both. What numpy does as fast stays in numpy. A greedy draft records only
  each row's largest values, which the call that runs its passes finds (`native/features.py`): rows are not
  copied.
- Draws are keyed by (seed, position, purpose), so `match` gives the tokens of plain sampling, and
  `record/recheck.py` can recompute every verdict. Under `match` a sampled draft draws with the target token's
  key. Other rules need independent draws, so the draft has its own key. That key includes the round's start:
  a position can be drafted again after a rejection, and the second draft may depend on the first draw.
- DRY (`dry.py`) is llama.cpp's, as a function of the row and the tokens before it, including drafted ones.
"""
