"""Shipped test tools: crash points, and kits that journals and integrations run whole."""

from .crash import CrashPoint, arm, reach

__all__ = ["CrashPoint", "arm", "reach"]
