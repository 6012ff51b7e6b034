"""The whole system in one process, decided by a seed: virtual time, simulated disks and network, and faults of all kinds."""
