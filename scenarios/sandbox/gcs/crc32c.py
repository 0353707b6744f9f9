"""CRC-32C (Castagnoli), which Cloud Storage keeps of every object. ``google-crc32c`` does it where it is installed."""

from __future__ import annotations

import base64
import importlib

_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def slow_crc32c(data: bytes) -> int:
    """The checksum in plain Python, about 10 MB a second."""
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def crc32c(data: bytes) -> int:
    try:
        return int(importlib.import_module("google_crc32c").value(data))
    except ImportError:
        return slow_crc32c(data)


def encoded(data: bytes) -> str:
    """As the API words it: base64 of the four bytes, big-endian."""
    return base64.b64encode(crc32c(data).to_bytes(4, "big")).decode("ascii")
