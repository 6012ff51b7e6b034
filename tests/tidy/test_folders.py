"""Housekeeping: folders of a package import downwards only, hold few modules, and no imports go in a circle."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from support.child import environment
from support.sources import modules, tree

MODULES = modules()
Imports = ast.Import | ast.ImportFrom
MOST_MODULES = 15  # of a folder; a folder with more has no clear subject

# Floors from the ground up: a folder imports only from its own and from lower floors. A module of a package's root is a
# separate room of a floor.
FLOORS = {
    "whenabouts_protocol": [
        "errors interval lazy logs probability utf8",
        "cbor streaming_join topics",
        "layout",
        "reading",
        "group_state messages",
    ],
    "whenabouts_cloud": [
        "arrays blobs broker display_time durable epc file_version jobs.session metrics_file orderly_end progress svg",
        "ingest.receiving jit landing",
        "epcis health",
        "delivery enrol importers latwin.model pattern result_ids words",
        "cep.kernel cep.uncertain correlation.batch correlation.distributions delivery.capturing language latwin.windows",
        "cep.explain cep.runtime latwin.conjunction latwin.probability rules",
        "cep.count correlation frontier latwin",
        "cep ingest shard spark",
        "cep.shard correlation.stream jobs.output latwin.shard",
        "jobs.engines",
        "jobs.reading",
        "jobs latwin.picture research research.baselines research.operators warm",
        "research.experiments why_not",
        "dashboard.data dashboard.results",
        "dashboard.answers",
        "dashboard.picture dashboard.questions",
        "dashboard",
        "dashboard.server",
        "commands",
        "commands.dashboard commands.exchange commands.landing",
        "cli",
    ],
    "whenabouts": [
        "frames",
        "sequences states",
        "held intervals landings matches pairs tag_columns",
        "columns",
        "explanations",
        "pictures",
    ],
    "whenabouts_edge": [
        "backoff clock events group replace_file trace",
        "board.machine config serial_handlers",
        "mqtt_client",
        "install readers",
        "rules store",
        "board uplink",
        "flash health",
        "agent",
        "capture",
        "cli",
    ],
    "whenabouts_sim": [
        "boards.shims world",
        "chaos.machine judge readers",
        "chaos.network",
        "chaos.parts stack",
        "chaos.schedule",
        "chaos.checks",
        "chaos.checks.clocks chaos.checks.landing chaos.checks.rules",
        "chaos.checks.gateways",
        "chaos",
        "boards demo logs swarm",
        "soak",
        "cli",
    ],
    "whenabouts_hardware": [
        "crc16 frame",
        "decoding dialogue",
        "polling",
        "reader",
        "network",
        "readers",
    ],
}
FLOOR_OF = {
    package: {room: n for n, rooms in enumerate(floors) for room in rooms.split()} for package, floors in FLOORS.items()
}
# Names of files that occur in several folders of a package, each with the role that it has in all of them.
SAME_PART = {
    "whenabouts_cloud": {
        "cep": "the event engine as a command, as a job, as experiments of its paper",
        "correlate": "the correlation as a command, and as a job",
        "explain": "rules in words, and the command that prints them",
        "latwin": "the detector of states as a command, as a job, as experiments of its paper",
        "layout": "rows of the arrays that kernels work on",
        "metrics": "counters of a process, as text for Prometheus",
        "results": "results of an engine as rows of a table",
        "store": "where something is kept: the events of an engine, the files of a landing",
        "shard": "the protocol of shards, and each engine's own",
        "why_not": "the reason for a match that did not come, and the command that prints it",
    },
    "whenabouts_edge": {
        "agent": "one gateway's work in one process: on a PC, and on a board",
        "command": "options and output of a subcommand",
        "plan": "changes to make, as a value; a driver makes them",
    },
    "whenabouts_sim": {"command": "options and output of a subcommand"},
}


# Modules outside `research` that need it when they are loaded.
USERS_OF_RESEARCH = {
    # The office of the demonstration is that of the papers' experiments. These cannot import it from the simulator, which
    # builds on the cloud's package.
    "whenabouts_sim.demo.office",
}


def room(module: str) -> str:
    """The folder of a module below its package; of a module in the root its own name, of the package itself ""."""
    _, *parts = module.split(".")
    within = parts if MODULES[module].name == "__init__.py" or len(parts) == 1 else parts[:-1]
    return ".".join(within)


def targets(module: str) -> set[str]:
    """Modules that a module imports, in functions too: a module of a package, or the package for its other names."""
    return {name for name in imported(tree(MODULES[module])) if name in MODULES and name != module}


def imported(node: ast.AST) -> set[str]:
    """Names of modules that any code imports, in functions too, also of modules outside the project."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Import):
            names.update(alias.name for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom) and inner.module and not inner.level:
            full = [f"{inner.module}.{alias.name}" for alias in inner.names]
            names.update(name if name in MODULES else inner.module for name in full)
    return names


def run_time(node: ast.AST, functions: bool = True) -> Iterator[ast.AST]:
    """The nodes below a node, without those under `if TYPE_CHECKING`, and if wanted without those in functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            yield from run_time(ast.Module(child.orelse, []), functions)
        elif functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from run_time(child, functions)


def imports_at_run_time(module: str, functions: bool = True) -> set[str]:
    """Modules of the project that a module imports at run time; without `functions`, only those it imports when loaded."""
    code = tree(MODULES[module])
    names = (name for node in run_time(code, functions) for name in imported(node) if isinstance(node, Imports))
    return {name for name in names if name in MODULES}


def folders(package: str) -> dict[str, set[str]]:
    """The folders and root modules just below a package, each with those that it imports at run time."""
    graph: dict[str, set[str]] = {}
    for module in (name for name in MODULES if name.startswith(f"{package}.")):
        found = {name.split(".")[1] for name in imports_at_run_time(module) if name.startswith(f"{package}.")}
        here = module.split(".")[1]
        graph.setdefault(here, set()).update(found - {here})
    return graph


def upward(package: str) -> list[str]:
    """Imports that go to the same or a higher floor, but to the own room."""
    floor, wrong = FLOOR_OF[package], []
    for module in (name for name in MODULES if name.startswith(f"{package}.")):
        for target in (name for name in imports_at_run_time(module) if name.startswith(f"{package}.")):
            here, there = room(module), room(target)
            if here != there and floor.get(there, 99) >= floor.get(here, -1):
                wrong.append(f"{module} -> {target}")
    return wrong


@pytest.mark.parametrize("package", FLOORS)
def test_folders_import_only_from_lower_floors(package):
    """A folder can be read with only the folders below it."""
    rooms = {room(module) for module in MODULES if module.startswith(f"{package}.")}
    assert rooms - set(FLOOR_OF[package]) - {""} == set()
    assert upward(package) == []


def test_no_imports_go_in_a_circle():
    """Neither within a folder, nor hidden in functions."""
    circle = None
    try:
        TopologicalSorter({module: targets(module) for module in MODULES}).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle is None


@pytest.mark.parametrize("package", FLOORS)
def test_no_imports_between_folders_go_in_a_circle(package):
    """The folders just below a package have an order in which they can be read, each with all folders inside it."""
    circle = None
    try:
        TopologicalSorter(folders(package)).prepare()
    except CycleError as error:
        circle = error.args[1]
    assert circle is None


def test_research_is_loaded_only_by_those_who_ask_for_it():
    """The product's modules import the papers' code inside functions, if at all."""
    users = {
        module
        for module in MODULES
        if not module.startswith("whenabouts_cloud.research")
        and any(name.startswith("whenabouts_cloud.research") for name in imports_at_run_time(module, functions=False))
    }
    assert users == USERS_OF_RESEARCH


def test_engines_load_no_research():
    """Every process that detects patterns or correlates does without it; its names are still there."""
    code = (
        "import sys, whenabouts_cloud.cep as cep, whenabouts_cloud.correlation as correlation\n"
        "import whenabouts_cloud.cep.methods\n"
        "print(any('research' in name for name in sys.modules))\n"
        "correlation.operator, cep.engine(cep.Pattern.parse('SEQ(A, B) WITHIN 9'), ['A', 'B'], k=0, method='kslack')\n"
        "print(*sorted(n for n in sys.modules if n.startswith('whenabouts_cloud.research.') and n.count('.') == 2))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "False",
        "whenabouts_cloud.research.baselines",
        "whenabouts_cloud.research.operators",
    ]


def test_no_folder_is_a_long_list():
    """A newcomer can read the names of a folder at a glance."""
    size = Counter(path.parent for path in MODULES.values() if path.name != "__init__.py")
    assert {str(folder): n for folder, n in size.items() if n > MOST_MODULES} == {}


def test_names_of_files_occur_once_in_a_package():
    """Except for names that mean the same in several folders."""
    for package in {name.partition(".")[0] for name in MODULES}:
        names = Counter(path.stem for name, path in MODULES.items() if name.startswith(f"{package}."))
        assert {name for name, n in names.items() if n > 1 and name != "__init__"} <= set(SAME_PART.get(package, ())), (
            package
        )


def test_the_check_of_circles_sees_imports_in_functions():
    """An import inside a function counts as an import."""
    code = "def f():\n    from whenabouts_cloud.cep import detect, methods"
    assert imported(ast.parse(code)) == {"whenabouts_cloud.cep", "whenabouts_cloud.cep.methods"}
