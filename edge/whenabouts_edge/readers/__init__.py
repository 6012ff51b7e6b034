"""A reader on a gateway: its port, its session, the stamps of its readings, and who is present at it."""
