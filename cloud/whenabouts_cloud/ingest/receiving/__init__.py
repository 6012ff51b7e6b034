"""Messages on their way from the broker to the bridge, in a process of its own."""
