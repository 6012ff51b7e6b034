"""A gateway as a process of its group: its local states, the group's dense clock, and what it tells and hears of both."""
