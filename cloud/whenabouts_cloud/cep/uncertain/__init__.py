"""Decision of candidates whose stamps are intervals: order, probability, causality."""
