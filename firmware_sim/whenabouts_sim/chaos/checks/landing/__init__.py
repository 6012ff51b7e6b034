"""What must hold of a landing beside its readings: damage, repairs, dead letters."""
