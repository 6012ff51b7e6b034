"""Rules that run on the gateway itself: pairs of readings are found as the second of them is stamped."""
