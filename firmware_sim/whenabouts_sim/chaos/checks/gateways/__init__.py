"""What must hold of gateways: their ports, their own rules, visits, and all of it together."""
