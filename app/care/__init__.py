"""Help when something goes wrong: the log, the report to copy, check and repair. No Qt.

The log (`log.py`) says what went wrong and where in the program. It never contains the user's texts: messages
that may quote them are left out (`base/processes.py`). A process that crashes in native code writes through
Python's faulthandler. The engine writes to its home, which reports it with the failure (`engine/process`);
the window writes to a file that the next start reads.

`check.py` finds what is damaged or left over, and repairs it on request; nothing is deleted. A chat whose
file is lost is rebuilt from its traces.
"""
