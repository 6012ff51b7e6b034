"""Complex events: sequences of readings of one key, found although the readings arrive out of order."""
