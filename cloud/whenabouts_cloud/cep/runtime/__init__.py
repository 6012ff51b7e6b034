"""The event engine as an object: columns in, matches out, limits, snapshots, changes of patterns."""
