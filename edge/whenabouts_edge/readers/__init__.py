"""A reader on a gateway: its port, its session, the stamps of its readings, and the presence of tags."""
