"""The speculative loop: propose, verify, emit. `generate.rounds` reads from top to bottom. `answer_run.py`
surrounds it: it reads the prompt and starts the drafters, and adds up the totals afterwards.

- The token ids are the truth; a KV cache is only a cache. `Context.sync` rolls a cache back to the longest
  prefix that it shares with the truth and checks what llama.cpp answers, `decode` extends it. So there is no
  special case for "all accepted", an edited message, a regenerated answer, another strategy or another chat,
  and the draft never decodes an accepted token twice.
- The baseline is k = 0: strategy `none` is the same loop with nothing drafted.
- Recording costs no waiting. The loop has a thread of its own (`handover.py`). It hands a round over as the
  next pass begins, and the caller's thread works out meanwhile what a trace keeps of it (alternatives,
  probabilities). The loop waits only if that takes longer than the pass, so a round is yielded once the
  next one has been drafted.
- A viewer may hold the rounds back and step them (`Pace`). The loop waits between
  two rounds, with the last one handed over, and takes the wait out of every time.
- After a pass numpy finds cold caches: a call takes 10 to 40 µs instead of 1 to 5. So the loop makes few
  numpy calls, and short lists are plain Python.
- Block verification (`rules/block.py`, after "Block Verification Accelerates Speculative Decoding",
  arxiv.org/abs/2403.10444) judges a draft as a whole. Each place has a draw of its own, keyed by round as
  well, which is compared with its acceptance value h; the last place that passes is accepted with everything
  before it. The law is the same, and the mean of accepted tokens is at least as high. No token has a verdict
  of its own, so α is not defined. One-hot drafts cannot gain: for them the rule is the token-wise one.
- p at temperature 0: greedy verification draws nothing. The p and the alternatives that it records are the
  model's own probabilities at temperature 1, so that a reader sees how close the call was.
"""
