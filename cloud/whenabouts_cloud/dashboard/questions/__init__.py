"""Questions that may take long: each is answered by a process of its own, which is killed in time."""
