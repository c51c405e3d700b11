"""Chat templates: untrusted programs, rendered in a separate process.

`sandbox.py` runs in that process, which the engine keeps warm (`process.py`). It ends itself after two
seconds or at 1 GB, and Stop ends it at once. `chat.py` ensures that typed text never becomes a control token.
`Thinking` finds a template's thinking options while its pair is loaded. jinja2's own analysis gives the
variables that it reads; rendering a short chat with and without them shows what they do.
"""
