"""Many light gateways against one real broker and one real ingest, to find the rate at which the system bends."""
