"""Commands that look after a landing: its check and repair, merging and deleting."""
