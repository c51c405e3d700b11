"""The Models place: a catalogue of pairs, search, downloads and the library. It is imported when the place is
first opened, because the Hub's client is slow to import."""
