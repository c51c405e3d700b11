"""The Models place: a catalogue of pairs, search, downloads, the library, and the best draft for a target. It
is imported when the place is first opened, because the Hub's client is slow to import."""
