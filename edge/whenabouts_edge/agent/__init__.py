"""The agent of a gateway: it joins readers, clock, spool, rules, group and uplink in one process."""
