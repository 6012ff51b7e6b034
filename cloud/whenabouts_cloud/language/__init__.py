"""What of the rule language patterns need: grammar, durations, conditions, sequences, mistakes with their places."""
