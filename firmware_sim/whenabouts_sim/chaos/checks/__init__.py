"""What must hold in every schedule."""
