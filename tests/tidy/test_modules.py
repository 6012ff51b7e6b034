"""Housekeeping: which package imports which, and that every module has a docstring and a test."""

import ast
from functools import cache
from pathlib import Path

import pytest

from support.paths import REPOSITORY
from support.sources import FOLDERS, imports, modules, tracked_files, tree

MODULES = modules()

# protocol <- hardware <- edge; protocol <- cloud; all <- simulator
MAY_IMPORT = {
    "whenabouts_protocol": set(),
    "whenabouts_hardware": {"whenabouts_protocol"},
    "whenabouts_edge": {"whenabouts_protocol", "whenabouts_hardware"},
    "whenabouts_cloud": {"whenabouts_protocol"},
    "whenabouts": {"whenabouts_protocol", "whenabouts_cloud"},
    "whenabouts_sim": {"whenabouts_protocol", "whenabouts_hardware", "whenabouts_edge", "whenabouts_cloud"},
}
HEAVY = {"numpy", "pandas", "pyspark", "pyarrow", "numba", "cbor2"}  # a gateway is a Pi Zero or a board
MUST_NOT_IMPORT = {"whenabouts_protocol": HEAVY, "whenabouts_hardware": HEAVY, "whenabouts_edge": HEAVY}


def forbidden(package, names):
    """Imported names that a module of the package must not import."""
    roots = {name.split(".")[0] for name in names}
    ours = {root for root in roots if root.startswith("whenabouts_")}
    tests = roots & {"tests", "support", "property", "pytest", "hypothesis"}
    return (ours - MAY_IMPORT[package] - {package}) | (roots & MUST_NOT_IMPORT.get(package, set())) | tests


def by_module(fault, names=MODULES):
    """Result of `fault` by module, where it is not empty: one test looks at all modules."""
    return {name: problem for name in names if (problem := fault(name))}


def test_imports_go_one_way():
    """Nothing imports upward, and the edge stays small."""
    assert len(MODULES) > 300
    assert by_module(lambda name: forbidden(name.split(".")[0], imports(tree(MODULES[name])))) == {}


def test_only_what_makes_boards_imports_their_agent():
    """Modules that gateways and boards share lie beside both."""
    edge = [name for name in MODULES if name.startswith("whenabouts_edge.")]
    others = [name for name in edge if not name.startswith(("whenabouts_edge.board", "whenabouts_edge.flash"))]
    assert (
        by_module(
            lambda name: [x for x in imports(tree(MODULES[name])) if x.startswith("whenabouts_edge.board")], others
        )
        == {}
    )


@pytest.mark.parametrize(
    ("package", "source", "expected"),
    [
        ("whenabouts_protocol", "from whenabouts_hardware import x", {"whenabouts_hardware"}),
        ("whenabouts_cloud", "def f():\n    import whenabouts_edge.store.spool", {"whenabouts_edge"}),
        ("whenabouts_edge", "import numpy.linalg as n", {"numpy"}),
        ("whenabouts_edge", "import whenabouts_hardware, whenabouts_protocol.messages.batch", set()),
        ("whenabouts_cloud", "import numpy, whenabouts_protocol", set()),
        ("whenabouts_sim", "from support.paths import REPOSITORY", {"support"}),
    ],
)
def test_the_check_of_imports_sees_what_it_is_for(package, source, expected):
    """Imports inside functions and of submodules count."""
    assert forbidden(package, imports(ast.parse(source))) == expected


def test_every_module_has_a_docstring():
    """A module begins with a docstring; an empty file that only marks a package needs none."""
    silent = [str(path) for path in MODULES.values() if path.stat().st_size and not ast.get_docstring(tree(path))]
    assert silent == []


def reached(names):
    """Modules that imported names lead to: themselves, or where a package takes a name from."""
    functions = set()
    for name in names:
        if name in MODULES:
            functions.add(name)
        package, _, member = name.rpartition(".")
        if package in MODULES and MODULES[package].name == "__init__.py":
            functions |= taken(package).get(member, set())
    return functions


@cache
def taken(package):
    """The modules from which a package takes each of its names."""
    origins = {}
    for node in ast.walk(tree(MODULES[package])):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            origins.setdefault(alias.asname or alias.name, set()).add(node.module)
    return origins


# Reached by tests only through a command or through another module so far. The table may only get shorter.
WITHOUT_OWN_TEST = {
    "whenabouts_cloud.spark.file_slabs",
    "whenabouts_sim.stack.embedded_broker",
    "whenabouts_sim.stack.parent_death",
}


def test_every_module_is_tested():
    """Each is imported by a test, by its own name or by a name that its package gives out, or run by name in one."""
    files = [path for path in sorted((REPOSITORY / "tests").rglob("*.py")) if path != Path(__file__).resolve()]
    texts = [path.read_text(encoding="utf-8") for path in files]
    named = set()
    for text in texts:
        named |= reached(imports(ast.parse(text)))
    everything = "\n".join(texts)
    untested = [
        name
        for name, path in MODULES.items()
        if name not in named
        and path.name not in ("__init__.py", "__main__.py")
        and name not in everything
        and str(path.relative_to(REPOSITORY)) not in everything
    ]
    assert set(untested) == WITHOUT_OWN_TEST


def test_every_package_is_looked_at():
    """The folders of the table exist and no other holds a package of ours."""
    folders = {path.parent.relative_to(REPOSITORY) for path in tracked_files() if path.name == "__init__.py"}
    packages = {str(path) for path in folders if path.name.startswith("whenabouts")}
    assert packages == {f"{folder}/{package}" for package, folder in FOLDERS.items()}
