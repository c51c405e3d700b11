"""Devices, workers and their memory.

Before a pair is loaded, llama.cpp lays it out without taking memory (`offload.py`), and `memory.py`
adds the weights up by device; after loading, llama.cpp's own report says what each device took
(`native/load_params.py`). Devices of other machines are named RPC0, RPC1, … in the order of the pair's
`rpc`, so the names survive a replaced engine. `workers.py` greets a worker first, because llama.cpp aborts
on a missing one and waits for ever on a busy one.

`placement.py` changes a pair that does not fit: no draft, the draft on the CPU, a smaller cache or context.
Each change is laid out again, so its savings are measured.

Target and draft are read at the same time where both stay in main memory; devices and workers are asked by
one at a time. Every load ends with a self-test inside the engine process, so that kernels that fault do so
then. Where a process dies or finds no room, `process/safer.py` explains it and offers the next safe setting;
a fault while layers are on devices is taken for their driver's: flash attention goes first, then the
devices, and the CPU's own kernels last.

`memory.py`: a small file gets fewer threads where nobody chose a number. Each thread has at least 8 MiB of
weights a pass to itself, because threads wait for each other after every operation: two threads for the
bundled target and one for its draft are 1.9 times as fast as two for both.
"""
