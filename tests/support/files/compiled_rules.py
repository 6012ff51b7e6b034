"""Compiled rules from the golden vectors, for CPython and the board alike."""

from whenabouts_protocol.messages.compiled_rule import CompiledRule, RuleSide


def rule_of(fields):
    """The rule of an entry of rules.json."""
    sides = {side: RuleSide(**fields[side]) for side in ("a", "b")}
    return CompiledRule(**{**fields, **sides})
