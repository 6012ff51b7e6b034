"""What gateways and ingests report about themselves, kept beside the readings."""
