"""The lattice of a window as a drawing."""
