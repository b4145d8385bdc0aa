"""The kinds of data that are analysed here, one file and one class each.

Everything that differs between kinds is asked of the kind: see :class:`.Kind`. To add a kind, write
its class in one file that registers it, as ``vectors.py`` does, and import it in ``known.py``.
"""
