"""What a gateway keeps on disk until the cloud has landed it."""
