"""The Models place: a catalogue of pairs, search, downloads and the library.

`door` alone is imported with the window; the rest comes when the place is first opened, because the Hub's
client takes its time to import.
"""
