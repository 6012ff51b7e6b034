"""The authority that gives gateways, ingest, publisher and broker their certificates, and the broker its access rules."""
