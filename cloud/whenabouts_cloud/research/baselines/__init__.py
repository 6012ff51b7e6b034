"""The methods that the event engine is compared with: K-slack, conservative, aggressive."""
