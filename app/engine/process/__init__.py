"""The engine in a separate process, and the messages between it and the window.

`host.py` carries commands and events, `server.py` obeys them. The rounds of an answer run on one thread,
recording and sending on a second. A third reads commands, so that SetPace acts before the next round and
Stop during a pass: llama.cpp's abort callback is the C library's `strlen` over a two-byte buffer, which
costs nothing when asked some hundred times a pass and needs no interpreter lock.

When the process dies, its home says so (`Failed.gone`), a new process is made, and the same pair is loaded
again. A process that hangs is ended (`EngineHome.end`): the window offers that where a Stop had no effect for
two seconds, commands do it after five. `--engine thread` runs the same `Server` on a thread; both homes are
tested alike. `client.py` is the engine of `draftscope run` and the lab: it asks for one thing at a time and
reads the events that answer it.

`limits.py`: an engine process may take the memory that is free when it loads, in the system and in the
control groups (version 2) around it, less a sixteenth. The limit is RLIMIT_DATA, because mapped weights and
the addresses that GPU drivers reserve do not count there. So a request that is too large gives an error
instead of taking the machine or the container down.
"""
