"""The demonstration and the smart office, from start to judgement."""
