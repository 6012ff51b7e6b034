"""Up to which time everything has come: of a stream, from the promises of its gateways, and of a rule, from its streams."""
