"""Bounds of all times, in microseconds since 1970 UTC."""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
# A stamp further from 1970 comes from a clock that was never set. Engines take twice that, so sums of two times fit.
FURTHEST_US = 1 << 59
NEVER_US = -FURTHEST_US - 1  # before every time
# A stamp of a century or more is that of a clock that knew nothing, and says nothing of when: agents widen such by a century
# on each side, so that they hold the true time wherever the clock stood.
TIMELESS_US = 100 * 365 * 86_400 * 1_000_000
# A true stamp ends at most this long after the latest watermark: for the time from one watermark to the next, and for the
# way of a reading to the landing. A stamp beyond is from the future.
AHEAD_US = 60_000_000
