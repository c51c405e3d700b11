"""Chat templates: untrusted programs, rendered in a separate process.

`sandbox.py` runs in that process, which the engine keeps warm (`process.py`). It ends itself after two
seconds and at 1 GB, and Stop ends it at once. `chat.py` makes sure that typed text never becomes a control
token. `Thinking` finds a template's thinking options while its pair is loaded: jinja2's own analysis says
which variables it reads, and rendering a short chat with and without them says what they do.
"""
