"""What tasks write, and how a batch of results becomes visible."""
