"""What jobs have published, and what gateways and ingests have reported about themselves."""
