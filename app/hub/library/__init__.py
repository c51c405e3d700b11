"""The library: which models are here, what they are, and which can draft for which.

The probe process imports one module of this room: nothing is imported here, such as the Hub's client.
"""
