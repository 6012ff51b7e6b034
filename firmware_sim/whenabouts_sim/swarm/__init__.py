"""Many light gateways against one real broker and one real ingest: where does it bend?"""
