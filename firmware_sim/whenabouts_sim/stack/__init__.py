"""The whole system on one machine, every part a process of its own."""
