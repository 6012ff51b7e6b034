"""A gateway as a process of its group: its local states, the group's dense clock, and its messages to and from peers."""
