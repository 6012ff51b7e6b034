"""Laws of clocks: what readings say of them, and vector clocks."""
