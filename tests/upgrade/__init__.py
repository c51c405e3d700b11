"""What earlier versions wrote opens in this one: a home folder of each version, and what was in it.

`wrote_0_1_0/` was written by version 0.1.0 itself (`write.py`); it is never written anew.
"""
