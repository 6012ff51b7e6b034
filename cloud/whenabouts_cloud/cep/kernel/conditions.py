"""Evaluation of conditions in postfix order: over columns for one event, in machine code across events.

Arithmetic follows IEEE 754, except that every comparison with nan is false, `!=` too. Division by zero gives an infinity
or nan.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel.layout import BOUND, Scratch
from whenabouts_cloud.cep.kernel.program import STEP
from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.pattern.plan import Resolved

ATTRIBUTE, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, EQ, NE, LT, LE, GT, GE, AND, OR, NOT = range(16)
CODES = {
    "attribute": ATTRIBUTE, "constant": CONSTANT, "+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "negate": NEGATE,
    "=": EQ, "!=": NE, "<": LT, "<=": LE, ">": GT, ">=": GE, "and": AND, "or": OR, "not": NOT,
}  # fmt: skip
COLUMN_T_MIN, COLUMN_T_MAX = -1, -2  # columns of the stamps
STEPS = 256  # most steps of one condition: the stack has a place for each

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "=": np.equal,
    "!=": lambda a, b: (a < b) | (a > b),
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "and": lambda a, b: (a != 0) & (b != 0), "or": lambda a, b: (a != 0) | (b != 0),
}  # fmt: skip


def of_columns(steps: Resolved, columns: Mapping[str, Array], rows: Array) -> Array:
    """For each of the rows, True if the condition on one event holds; `columns` by name."""
    stack: list[Any] = []
    with np.errstate(all="ignore"):
        for op, _, column, value in steps:
            if op == "attribute":
                stack.append(columns[column][rows].astype(np.float64))
            elif op == "constant":
                stack.append(np.float64(value))
            elif op == "negate":
                stack.append(-stack.pop())
            elif op == "not":
                stack.append((stack.pop() == 0).astype(np.float64))
            else:
                b, a = stack.pop(), stack.pop()
                stack.append(np.asarray(_BINARY[op](a, b), dtype=np.float64))
    satisfied: Array = np.broadcast_to(stack.pop() != 0, rows.shape)
    return satisfied


@compiled_noref
def holds(steps: Array, step_value: Array, first: int, last: int, scratch: Scratch) -> Any:
    """True if the condition of steps [first, last) holds for the bound elements."""
    stack, top = scratch.stack, 0
    for step in range(first, last):
        op = steps[step, STEP.code]
        if op == ATTRIBUTE:
            element, column = steps[step, STEP.element], steps[step, STEP.column]
            if column == COLUMN_T_MIN:
                stack[top] = float(scratch.bound[element, BOUND.t])
            elif column == COLUMN_T_MAX:
                stack[top] = float(scratch.bound[element, BOUND.t_max])
            else:
                stack[top] = scratch.attrs[element, column]
            top += 1
        elif op == CONSTANT:
            stack[top] = step_value[step]
            top += 1
        elif op == NEGATE:
            stack[top - 1] = -stack[top - 1]
        elif op == NOT:
            stack[top - 1] = 1.0 if stack[top - 1] == 0.0 else 0.0
        else:
            top -= 1
            stack[top - 1] = _binary(op, stack[top - 1], stack[top])
    return stack[0] != 0.0


@compiled_noref
def _binary(op: int, a: float, b: float) -> float:
    if op == ADD:
        return a + b
    if op == SUBTRACT:
        return a - b
    if op == MULTIPLY:
        return a * b
    if op == DIVIDE:
        if b != 0.0 or b != b:
            return a / b
        if a == 0.0 or a != a:
            return np.nan
        return np.inf if (a > 0.0) == (np.copysign(1.0, b) > 0.0) else -np.inf
    if op == EQ:
        holds = a == b
    elif op == NE:
        holds = a < b or a > b
    elif op == LT:
        holds = a < b
    elif op == LE:
        holds = a <= b
    elif op == GT:
        holds = a > b
    elif op == GE:
        holds = a >= b
    elif op == AND:
        holds = a != 0.0 and b != 0.0
    else:
        holds = a != 0.0 or b != 0.0
    return 1.0 if holds else 0.0
