"""Readings on the disk of a gateway until the cloud has landed them."""
