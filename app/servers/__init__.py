"""Running servers: llama-server and vLLM, asked over HTTP; their answers become rounds like our engine's. No
Qt.

`ServerClient` does for a server what `EngineClient` does for an engine process. `describe` returns the
server's description; `generate` yields Started, RoundFinished and Finished. If a target's path is an address
(`is_address`), the pair is that server's model.

llama-server updates its counters `draft_n` and `draft_n_accepted` before it sends a round's tokens, so fates
are exact (`answer.py`). It never reports which tokens were rejected, p, q or the parts of a round's time.
vLLM reports accepted and drafted counts by step at the end of an answer, if started for that; otherwise only
counts for all its users. A server's first token comes from the prompt's pass: round 0 takes no time.
`http.py` sends the requests: the caller may stop at any time, and every failure of a server becomes a
sentence.
"""
