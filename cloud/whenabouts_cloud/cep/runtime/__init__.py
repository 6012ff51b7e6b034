"""The event engine as an object: columns in, matches out, limits, snapshots, patterns that change."""
