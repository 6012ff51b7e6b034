"""Readers on a network: LLRP over TCP, and readers that publish JSON themselves."""
