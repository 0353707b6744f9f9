"""The scenarios, a package each: its world, its faults and its judge in ``__init__``, its tools in ``arms``."""
