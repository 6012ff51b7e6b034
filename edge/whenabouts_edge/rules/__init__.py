"""Rules that run on the gateway: a pair of readings is found as soon as the second one is stamped."""
