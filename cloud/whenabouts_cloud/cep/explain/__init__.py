"""Why a pattern has no match."""
