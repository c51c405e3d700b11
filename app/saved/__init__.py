"""What is kept for people: settings, presets, chats. No Qt.

A file of an older format is copied to `name.version-N` before it is written in this one (`keep_version` in
`base/files.py`). `tests/upgrade` holds what each version wrote; whoever changes a format writes the next one.
"""
