"""Finds code that boards do not support: a walk over the syntax tree of a source, one function a rule.

mpy-cross refuses some syntax, the type check against a board's stubs knows most names. This module finds code that passes
both and still fails or differs on boards: floats of 32 bits, maps without order, a sort that is not stable, names that the
stubs declare and no firmware has. Observed on MicroPython 1.27 for the Pico W and its ports for 32 bits.
"""

import ast
from collections.abc import Iterator

ABSENT_METHODS = {
    "bit_length", "fsync", "hexdigest", "iter_unpack", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
    "removeprefix", "removesuffix", "strftime", "truncate", "zfill", "_replace", "_asdict",
}  # fmt: skip
ABSENT_ERRORS = {
    "BlockingIOError", "BrokenPipeError", "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError",
    "ConnectionResetError", "FileExistsError", "FileNotFoundError", "InterruptedError", "IsADirectoryError",
    "NotADirectoryError", "PermissionError", "ProcessLookupError", "RecursionError", "TimeoutError", "ExceptionGroup",
}  # fmt: skip
ABSENT_KEYWORDS = {"dumps": "sort_keys", "zip": "strict", "to_bytes": "signed", "from_bytes": "signed"}
ANY_ORDER = {"all", "any", "dict", "frozenset", "len", "max", "min", "set", "sorted", "sum"}  # independent of the order
IN_ORDER = {"enumerate", "iter", "list", "next", "tuple"}


def faults(source: str, floats: bool = False) -> list[tuple[int, str]]:
    """(line, problem) of everything that boards do not support, in the order of the lines; floats: these are allowed."""
    tree = ast.parse(source)
    problems = [*_of_nodes(tree, floats), *_of_order(tree), *_of_recursion(tree)]
    return sorted(set(problems))


def _of_nodes(tree: ast.Module, floats: bool) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        for what in (_syntax(node), None if floats else _float(node), _name(node), _call(node)):
            if what is not None:
                yield node.lineno, what  # type: ignore[attr-defined]


def _syntax(node: ast.AST) -> str | None:
    if isinstance(node, ast.Match):
        return "match"
    if isinstance(node, ast.FunctionDef | ast.Lambda) and node.args.posonlyargs:
        return "positional-only parameters"
    if isinstance(node, ast.AsyncFunctionDef):
        return "async"
    if isinstance(node, ast.Delete) and any(_is_slice(target) for target in node.targets):
        return "del of a slice"
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and node.slice.step is not None:
        return "slice with a step"
    if isinstance(node, ast.ClassDef) and any(keyword.arg == "metaclass" for keyword in node.keywords):
        return "metaclass"
    if isinstance(node, ast.ClassDef) and len(node.bases) > 1:
        return "several base classes: super() skips one"
    return None


def _float(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
        return "float literal"
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
        return "true division"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.right, ast.UnaryOp):
        return "negative power"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float":
        return "float()"
    if isinstance(node, ast.Call) and _path(node.func) == "time.time":
        return "time.time(): a float here, whole seconds there"
    return None


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr == "__cause__":
        return "__cause__, absent on boards"
    if isinstance(node, ast.Attribute) and _path(node) in ("os.replace", "os.path"):
        return f"{_path(node)}, absent on boards"
    if isinstance(node, ast.Name) and node.id in ABSENT_ERRORS:
        return f"{node.id}, absent on boards: catch OSError and look at errno"
    return None


def _call(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    keywords = {keyword.arg for keyword in node.keywords}
    if isinstance(node.func, ast.Attribute) and name in ABSENT_METHODS:
        return f"{name}(), absent on boards"
    if ABSENT_KEYWORDS.get(name, "") in keywords:
        return f"{name}({ABSENT_KEYWORDS[name]}=), absent on boards"
    if name == "deque" and len(node.args) != 2:
        return "deque() without a length"
    if name == "isinstance" and len(node.args) == 2 and _asks_for_int(node.args[1]):
        return "isinstance(_, int), which is false for True on boards"
    if name in ("sort", "sorted") and "key" in keywords:
        return "a sort by a key: equal ones change places on boards"
    return None


# ---- order of maps and sets


def _of_order(tree: ast.Module) -> Iterator[tuple[int, str]]:
    unordered = _unordered_names(tree)
    forgiven = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ANY_ORDER
        for argument in node.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and _has_no_order(node.iter, unordered):
            yield node.lineno, "a loop in the order of a map or set"
        elif isinstance(node, ast.ListComp | ast.GeneratorExp) and id(node) not in forgiven:
            if any(_has_no_order(part.iter, unordered) for part in node.generators):
                yield node.lineno, "a list in the order of a map or set"
        elif isinstance(node, ast.Call) and node.args and _has_no_order(node.args[0], unordered):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in IN_ORDER and id(node) not in forgiven:
                yield node.lineno, "a list in the order of a map or set"
            elif name in ("join", "extend"):
                yield node.lineno, "a text or list in the order of a map or set"


def _unordered_names(tree: ast.Module) -> set[str]:
    """Paths of names that hold a map or set somewhere in the module: assigned one, or annotated as one."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and _is_annotated(node.annotation):
            names.add(_path(node.target))
        elif isinstance(node, ast.Assign) and _makes_unordered(node.value):
            names |= {_path(target) for target in node.targets}
        elif isinstance(node, ast.arg) and node.annotation is not None and _is_annotated(node.annotation):
            names.add(node.arg)
    return names - {""}


def _is_annotated(annotation: ast.expr) -> bool:
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return isinstance(text, str) and text.startswith(("dict", "set", "frozenset"))


def _makes_unordered(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict | ast.Set | ast.DictComp | ast.SetComp):
        return True
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("dict", "set", "frozenset")


def _has_no_order(node: ast.expr, unordered: set[str]) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.attr in ("items", "keys", "values")
    return _makes_unordered(node) or _path(node) in unordered


# ---- recursion


def _of_recursion(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions that call themselves, directly or through others of the module: the stack holds some 20 calls."""
    bodies: dict[str, ast.FunctionDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            bodies[node.name] = node
    calls = {
        name: {
            called for inner in ast.walk(body) if isinstance(inner, ast.Call) and (called := _own_call(inner)) in bodies
        }
        for name, body in bodies.items()
    }
    for name, body in bodies.items():
        reached, waiting = set(), list(calls[name])
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += calls[one]
        if name in reached:
            yield body.lineno, "recursion"


def _own_call(node: ast.Call) -> str:
    """The name of the called function of this module or method of this object."""
    if isinstance(node.func, ast.Name):
        return node.func.id
    path = _path(node.func)
    return path.removeprefix("self.") if path.startswith("self.") and path.count(".") == 1 else ""


def _path(node: ast.AST) -> str:
    """`a.b.c` of names; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _path(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def _is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def _asks_for_int(node: ast.expr) -> bool:
    kinds = node.elts if isinstance(node, ast.Tuple) else [node]
    names = {getattr(kind, "id", "") for kind in kinds}
    return "int" in names and "bool" not in names
