"""The engine in a separate process, and the messages between it and the window.

`host.py` carries commands, and gives every event to the home's owner; `server.py` executes the commands. The
rounds of an answer run on one thread; recording and sending run on a second. A third reads commands, so
SetPace acts before the next round, and Stop during a pass. llama.cpp's abort callback is the C library's
`strlen` over a two-byte buffer, which is cheap and needs no interpreter lock.

If the process dies, its home reports it (`Failed.gone`), a new home starts, and the same pair is loaded
again. A process that hangs is ended (`EngineHome.end`): the window offers that if a Stop had no effect for
two seconds; commands do it after five. `--engine thread` runs the same `Server` on a thread; both homes pass
the same tests. `client.py` is the engine of `draftscope run` and the lab: it sends one command at a time and
reads its events.

`limits.py`: an engine process may take the memory that is free when it loads, less a sixteenth. That counts
the system and its control groups (version 2). The limit is RLIMIT_DATA, which ignores mapped weights and the
addresses that GPU drivers reserve. So a request that is too large gives an error instead of taking down the
machine or container.
"""
