"""The user's saved data: settings, presets, chats. No Qt.

A file of an older format is copied to `name.version-N` before it is written in this one (`keep_as` in
`base/files.py`). `tests/upgrade` contains files of each version; if you change a format, add the next.
"""
