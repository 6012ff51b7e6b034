"""Evaluates a predicate for all cells of a lattice at once: word algebra on a stack of sets of cells.

A leaf depends on few processes. Its values for the packed processes are one word for each choice of places of its
leading ones; these words are laid out over the box. The box is processed in pieces that fit the cache; the place of a
process whose stride exceeds a piece is constant in it. A count of true parts is stored in binary, one set of cells for
each digit.

    leaves  (leaves, columns of Leaf, then those of Lead for each leading process)
    steps   (steps, columns of Step)
"""

from typing import Any, NamedTuple

from whenabouts_cloud.jit import Array, columns, compiled_noref

PIECE = 4096  # words
PUSH, AND_LEAF, OR_LEAF, AND, OR, NOT, COUNT, ADD, AT_LEAST, NOTHING, EVERYTHING = range(11)


class Leaf(NamedTuple):
    """Places of the words of a leaf."""

    begin: int  # of its words among those of all leaves
    leading: int  # number of leading processes that it depends on


class Lead(NamedTuple):
    """A leading process that a leaf depends on."""

    stride: int  # in words of the box
    width: int
    step: int  # in words of the leaf


class Step(NamedTuple):
    """A step of the stack machine."""

    operation: int
    operand: int  # a leaf, a number of digits, or for AT_LEAST the least count << 8 | digits


LEAF, LEAD, STEP = columns(Leaf), columns(Lead), columns(Step)
LEADS = len(LEAF)  # first column of the first leading process


class Code(NamedTuple):
    """A predicate as operations on a stack: leaves, steps, words of all leaves, and the stack."""

    leaves: Array
    steps: Array
    words: Array
    stack: Array


@compiled_noref
def leaf_word(code: Code, leaf: int, index: int) -> Any:
    """The word of a leaf at the word `index` of the box."""
    leaves = code.leaves
    word = leaves[leaf, LEAF.begin]
    for i in range(leaves[leaf, LEAF.leading]):
        lead = LEADS + i * len(LEAD)
        place = index // leaves[leaf, lead + LEAD.stride] % leaves[leaf, lead + LEAD.width]
        word += place * leaves[leaf, lead + LEAD.step]
    return code.words[word]


@compiled_noref
def apply_leaf(code: Code, leaf: int, how: int, begin: int, count: int, top: int) -> None:
    """Applies a leaf to a piece of the box, from word `begin` on: PUSH writes it to level `top` of the stack, AND_LEAF and
    OR_LEAF combine it with what is there. Its word is constant along `run` words.
    """
    run, row = count, code.stack[top]
    for i in range(code.leaves[leaf, LEAF.leading]):
        run = min(run, code.leaves[leaf, LEADS + i * len(LEAD) + LEAD.stride])
    for start in range(0, count, run):
        word = leaf_word(code, leaf, begin + start)
        if how == AND_LEAF:
            if word == 0:
                row[start : start + run] = 0
            elif word != -1:
                for i in range(start, start + run):
                    row[i] &= word
        elif how == OR_LEAF:
            if word != 0:
                for i in range(start, start + run):
                    row[i] |= word
        else:
            row[start : start + run] = word


@compiled_noref
def combine(code: Code, step: int, top: int, count: int) -> Any:
    """Performs a step that needs no leaf on a piece; returns the new top of the stack."""
    stack = code.stack
    kind, many = code.steps[step, STEP.operation], code.steps[step, STEP.operand]
    if kind == NOT:
        for i in range(count):
            stack[top, i] = ~stack[top, i]
    elif kind == AND:
        for i in range(count):
            stack[top - 1, i] &= stack[top, i]
        return top - 1
    elif kind == OR:
        for i in range(count):
            stack[top - 1, i] |= stack[top, i]
        return top - 1
    elif kind in (NOTHING, EVERYTHING):
        stack[top + 1, :count] = -1 if kind == EVERYTHING else 0
        return top + 1
    elif kind == COUNT:
        for digit in range(many):
            stack[top + 1 + digit, :count] = 0
        return top + many
    elif kind == ADD:
        for digit in range(many):
            level = top - many + digit
            for i in range(count):
                carry = stack[level, i] & stack[top, i]
                stack[level, i] ^= stack[top, i]
                stack[top, i] = carry
        return top - 1
    return top


@compiled_noref
def at_least(code: Code, least: int, digits: int, top: int, count: int) -> Any:
    """Replaces the digits of a count by the cells where it is at least `least`; returns the new top of the stack."""
    stack = code.stack
    for i in range(count):
        equal, more = -1, 0
        for digit in range(digits - 1, -1, -1):
            bit = stack[top - digits + 1 + digit, i]
            if (least >> digit) & 1:
                equal &= bit
            else:
                more |= equal & bit
                equal &= ~bit
        stack[top - digits + 1, i] = more | equal
    return top - digits + 1


@compiled_noref
def evaluate(code: Code, piece: int, words: Array, true: Array) -> bool:
    """Sets the bits of `true` where the predicate holds; returns True if it holds in a CGS of the lattice.

    Bits of `true` outside of the lattice are meaningless. piece: words evaluated at a time; words: of the box.
    """
    total, common = len(words), 0
    for begin in range(0, total, piece):
        top = -1
        for step in range(len(code.steps)):
            kind, which = code.steps[step, STEP.operation], code.steps[step, STEP.operand]
            if kind <= OR_LEAF:
                if kind == PUSH:
                    top += 1
                apply_leaf(code, which, kind, begin, piece, top)
            elif kind == AT_LEAST:
                top = at_least(code, which >> 8, which & 255, top, piece)
            else:
                top = combine(code, step, top, piece)
        for i in range(piece):
            true[begin + i] = code.stack[0, i]
            common |= code.stack[0, i] & words[begin + i]
    return common != 0
