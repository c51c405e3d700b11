"""From a row of logits to a drawn token: filters, distributions, draws.

- Rows are lazy (`rows.py`): nothing is computed after a rejected token.
- Rows are as small as what the filters leave (`distribution.py`): a few ids with their p. Verification,
  residual, draws and sampled drafts work on those. `sampler.py` finds them by bounds (`logits.py`: maxima of
  groups) and never sorts the vocabulary; `tests/dense.py` keeps the sorted form as the reference.
- XTC's own draw is summed out: tokens are drawn from the law over both cases.
- Rows of a whole vocabulary reuse memory (`RowStore`): fresh pages cost more than what is written into
  them.
- Tokens are drawn by noise (`noise.py`): the largest log p + luck wins, and the luck of a token depends on
  the key and its id alone. So rows that differ by rounding give the same token nearly always, which intervals
  of a cumulative sum do not; and a draft that draws with the target's luck draws its token more often.
- Exponentials, probabilities, the largest values, what top-k, top-p and min-p leave of them, and draws take
  one call for a row each, of functions that set-up compiles (`kernel.c`; `kernel.py` is the way to them): a
  third to a half of numpy's time. Without a compiler, the numpy version of each call is used; tests run both.
  What numpy does as fast stays numpy's. The largest values of a greedy draft's rows are found
  in the call that runs its passes (`native/features.py`): they are all that is recorded of a row, which is
  not copied.
- Draws are keyed by (seed, position, purpose), so `match` gives what plain sampling gives, and
  `record/recheck.py` can recompute every verdict. Under `match` a sampled draft draws with the key of the
  target's token; under the other rules, whose law needs independent draws, with one of its own. The draws of
  a sampled draft also carry the round's start: a position can be drafted again after a rejection, and how far
  the second draft reaches may depend on the first one's draw.
- DRY (`dry.py`) is llama.cpp's, as a function of the row and the tokens before it, drafted ones included.
"""
