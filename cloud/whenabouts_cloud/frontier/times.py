"""Bounds of all times, in microseconds since 1970 UTC."""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
# A stamp further from 1970 comes from a clock that was never set. Engines take twice that, so sums of two times fit.
FURTHEST_US = 1 << 59
NEVER_US = -FURTHEST_US - 1  # before every time
