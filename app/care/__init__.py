"""What is there for when something goes wrong: the log, the report to copy, check and repair. No Qt.

The log (`log.py`) says what went wrong and where in the program, and never what somebody wrote: the texts of
errors that may quote it are left out (`base/processes.py`). A process that dies of native code writes through
Python's faulthandler: the engine to its home, which passes it on with the failure (`engine/process`), the
window to a file that the next start reads.

`check.py` finds what is damaged or left over and only then, if told to, mends it; nothing is deleted. A chat
whose file is lost is made again from its traces.
"""
