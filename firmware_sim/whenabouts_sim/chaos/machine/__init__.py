"""What the product finds below it in a simulation: time, chance, disks, and processes that can be killed."""
