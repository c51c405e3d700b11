"""The speculative loop: propose, verify, emit. Read `generate.rounds` from top to bottom. `answer_run.py`
reads the prompt and starts the drafters before it, and adds up the totals after it.

- The token ids are the truth; a KV cache is only a cache. `Context.sync` rolls a cache back to the longest
  prefix that it shares with the truth, and checks llama.cpp's answer; `decode` extends it. So these need no
  special case: all accepted, an edited message, a regenerated answer, a different strategy or chat. The draft
  never decodes an accepted token twice.
- The baseline is k = 0: strategy `none` is the same loop with nothing drafted.
- The loop does not wait for recording. It runs on the engine's thread of passes (`handover.py`) and hands a
  round over when the next pass begins. The caller's thread then computes what a trace records (alternatives,
  probabilities). The loop waits only if that takes longer than the pass. So a round is yielded after the
  next one was drafted.
- A viewer can pause and step the rounds (`Pace`). The loop waits between two rounds, after the last one was
  handed over, and no recorded time includes the wait.
- A pass leaves the processor's caches cold: a numpy call then takes 10 to 40 µs instead of 1 to 5. So the
  loop makes few numpy calls, and short lists are plain Python.
- Block verification (`rules/block.py`, after "Block Verification Accelerates Speculative Decoding",
  arxiv.org/abs/2403.10444) judges a draft as a whole. Each place has its own draw, also keyed by round, which
  is compared with its acceptance value h. The last place that passes is accepted with everything before it.
  The distribution is the same, and on average at least as many tokens are accepted. No token has its own
  verdict, so α is undefined. One-hot drafts cannot gain: for them the rule equals the token-wise one.
- At temperature 0 nothing is drawn. The recorded p and alternatives are the model's own probabilities at
  temperature 1, so that a reader sees how close the call was.
"""
