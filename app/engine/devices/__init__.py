"""Devices, workers and their memory.

Before loading, llama.cpp lays a pair out without taking memory (`offload.py`), and `memory.py` adds up the
weights by device. After loading, llama.cpp's own report says what each device took (`native/load_params.py`).
Devices of other machines are named RPC0, RPC1, … in the order of the pair's `rpc`, so the names survive a
replaced engine. `workers.py` checks each worker first, because llama.cpp aborts on a missing one and waits
for ever on a busy one.

`placement.py` changes a pair that does not fit: no draft, the draft on the CPU, a smaller cache or context.
Each change is laid out again to measure what it saves.

Target and draft are read at the same time if both stay in main memory. Devices and workers are used by one
thread at a time. Every load ends with a self-test inside the engine process, so that faulty kernels crash
then. If a process dies or finds no room, `process/safer.py` explains it and offers the next safe setting. A
fault with layers on devices is blamed on their driver: flash attention is dropped first, then the devices,
then the CPU's own kernels.

`memory.py` gives a small file fewer threads by default. Each thread has at least 8 MiB of weights, because
threads wait for each other after every operation. For the bundled pair, two threads for the target and one
for the draft are 1.9 times as fast as two for both.
"""
