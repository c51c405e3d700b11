"""The library: the models on this machine, their facts, and which can draft for which.

The probe process imports a module of this room, so nothing (such as the Hub's client) is imported here.
"""
