"""Which candidates are matches where stamps are intervals: order, probability, causality."""
