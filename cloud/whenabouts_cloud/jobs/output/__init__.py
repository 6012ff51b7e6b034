"""Files that tasks write, and their atomic publication."""
