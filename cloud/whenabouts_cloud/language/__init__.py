"""The part of the rule language for patterns: grammar, durations, conditions, sequences, mistakes with their places."""
