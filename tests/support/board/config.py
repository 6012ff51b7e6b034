"""The smallest configuration of a board's agent."""


def config(**more):
    """The configuration with these keys added, or in place of its defaults."""
    return {
        "site": "a", "gateway": "b", "broker": {"host": "h"}, "ntp": {"host": "n"},
        "readers": [{"port": 1, "kind": "rdm6300", "stream": "s"}], **more,
    }  # fmt: skip
