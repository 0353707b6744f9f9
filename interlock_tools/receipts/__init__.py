"""Receipts: an effect's records as one file that a stranger can check offline.

Everything here is pure: bytes and values go in, values come out. Nothing reads
a clock, a file or a socket, and trust always comes from the caller.
"""
