"""Running servers: llama-server and vLLM, asked over HTTP, heard as rounds like our own engine's. No Qt.

`ServerClient` is to an address what `EngineClient` is to an engine process: `describe` says what the server
tells of itself, `generate` yields Started, RoundFinished and Finished. A pair whose target's path is an
address (`is_address`) stands for the model behind it.

llama-server moves its counters `draft_n` and `draft_n_accepted` before it sends a round's tokens, so that
fates are exact (`answer.py`); which tokens were rejected, p, q and the parts of a round's time are never
told. vLLM tells accepted and drafted counts by step at the end of an answer, where it was started for that,
and otherwise only counts for all its users. A server's first token comes out of the prompt's pass: round 0
takes no time of its own. `http.py` does the asking: the caller may stop at any time, and every way in which a
stranger's server can fail is one sentence.
"""
