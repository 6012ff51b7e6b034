"""A simulated broker, the connections to it, and the faces that the product sees of them."""
