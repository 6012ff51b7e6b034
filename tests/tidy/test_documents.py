"""Statements of the documents about commands, targets, files, rules and figures are true."""

import ast
import re
from collections import Counter

import click
import pytest

from support.documents import REASONS, RUN_BY, blocks, linked, page, pages
from support.paths import REPOSITORY
from support.sources import FOLDERS, modules, tracked_files
from whenabouts_cloud import shard
from whenabouts_cloud.cep.shard import results as matches
from whenabouts_cloud.cli import main as cloud
from whenabouts_cloud.correlation import pairs
from whenabouts_cloud.ingest.ingest_counters import Counters, GatewayCounters
from whenabouts_cloud.ingest.metrics import metrics as ingest_metrics
from whenabouts_cloud.jobs.metrics import metrics as job_metrics
from whenabouts_cloud.landing import schema as landing
from whenabouts_cloud.language import grammar
from whenabouts_cloud.latwin.shard import results as verdicts
from whenabouts_cloud.rules import load_rules, parse_rules
from whenabouts_edge.cli import main as edge
from whenabouts_edge.config.load import parse
from whenabouts_edge.health import metrics
from whenabouts_sim.cli import main as sim
from whenabouts_sim.demo.rules import RULE
from whenabouts_sim.world.world import DOCK, DOOR

COMMANDS = {"whenabouts-edge": edge, "whenabouts-cloud": cloud, "whenabouts-sim": sim}
PAGES = pages()
# How many blocks of commands are marked as not run. A new mark has to be entered here, so that none is added unseen.
MARKED = {"root": 2, "board": 2, "reader": 1, "make": 8, "forever": 7}
README_LINES = 120


def _commands(text):
    """(program, what follows) of every line in a block of commands, and of every command within a sentence."""
    lines = [command for block in blocks(text) for command, _ in block.steps]
    lines += re.findall(r"`(whenabouts-(?:edge|cloud|sim) [^`\n]+)`", text)
    for line in lines:
        for name in COMMANDS:
            for rest in re.findall(rf"(?:^|[ /]){name} ((?!--)[a-z-]+[^|&;<>#]*)", line):
                yield name, rest.strip()


def _faults(text):
    """Commands of a page that the programs do not have."""
    for program, rest in _commands(text):
        group, words = COMMANDS[program], rest.split()
        while isinstance(group, click.Group) and words and words[0] in group.commands:
            group = group.commands[words.pop(0)]
        known = {option for p in group.params for option in p.opts} | {"--help"}
        unknown = {word for word in words if word.startswith("--")} - known
        if (isinstance(group, click.Group) and words) or unknown:
            yield f"{program} {rest}"


def test_there_are_commands_of_ours_to_look_at():
    """The checks below look at something, and can find a fault."""
    assert len(list(_commands(PAGES["README.md"]))) >= 6
    assert sum(len(list(_commands(text))) for text in PAGES.values()) > 70
    shown = "```console\n$ whenabouts-edge chekc\n$ whenabouts-cloud run --lnading x\n```\n"
    assert list(_faults(shown)) == ["whenabouts-edge chekc", "whenabouts-cloud run --lnading x"]


def test_commands_in_the_documents_exist_with_their_options():
    """Every command and option that a page shows exists in the program."""
    faults = {name: problems for name, text in PAGES.items() if (problems := list(_faults(text)))}
    assert faults == {}


def test_commands_in_the_documents_are_run():
    """A page with commands is run by the test module that the table names; others state why not and are counted."""
    runs = {name for name, text in PAGES.items() if any(block.reason is None for block in blocks(text))}
    assert runs == set(RUN_BY)
    for name, module in RUN_BY.items():
        assert (REPOSITORY / module).exists(), (name, module)
    marks = Counter(block.reason for text in PAGES.values() for block in blocks(text) if block.reason)
    assert marks.keys() <= REASONS.keys()
    assert marks == MARKED


def test_every_mark_stands_above_a_block_of_commands():
    """A mark without a block of commands below it would have no effect."""
    for name, text in PAGES.items():
        marks = re.findall(r"^<!-- not run: .* -->$", text, re.M)
        assert len(marks) == sum(block.reason is not None for block in blocks(text)), name


def test_make_targets_in_the_documents_exist():
    """Every `make TARGET` of a page is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", page("Makefile"), re.M)) | {".node/.ready"}
    for name, text in PAGES.items():
        typed = [command for block in blocks(text) for command, _ in block.steps if command.startswith("make ")]
        named = {*re.findall(r"`make ([a-z-]+)", text), *(line.split()[1] for line in typed)}
        assert named <= targets, name


def test_the_readme_is_short():
    """It is an introduction, not the manual; it names the two commands that do everything."""
    readme = PAGES["README.md"]
    assert len(readme.splitlines()) <= README_LINES
    assert "$ make demo" in readme
    assert "`make test`" in readme


def test_links_in_the_documents_lead_somewhere():
    """Files that pages link to exist."""
    assert len(linked("README.md")) >= 10
    lost = {name: missing for name in PAGES if (missing := [str(p) for p in linked(name) if not p.exists()])}
    assert lost == {}


def _tables(text):
    """The rows of every table of a page, each with its cells; a bar within a cell is written with a backslash."""
    outside_code = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for table in re.findall(r"(?:^\|.*\n)+", outside_code, re.M):
        yield [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in table.splitlines()]


def test_the_rows_of_a_table_have_equally_many_cells():
    """A bare bar within a cell, also within code, would begin another one."""
    assert [len(row) for row in next(_tables("| a | b |\n|---|---|\n| `|x|` | y |\n"))] == [2, 2, 4]
    assert sum(len(list(_tables(text))) for text in PAGES.values()) > 50
    odd = {
        name: rows
        for name, text in PAGES.items()
        if (rows := [r for t in _tables(text) for r in t if len(r) != len(t[0])])
    }
    assert odd == {}


def test_the_map_names_every_folder_of_code():
    """ARCHITECTURE lists each package, or each folder directly in it, and no folder that is not there."""
    listed = set(re.findall(r"^\| `([a-z_]+(?:/[a-z_]+)*)/` \|", PAGES["ARCHITECTURE.md"], re.M))
    assert [path for path in sorted(listed) if not (REPOSITORY / path).is_dir()] == []
    parents = {path.parent.relative_to(REPOSITORY).parts[:3] for path in tracked_files() if path.suffix == ".py"}
    folders = {"/".join(parts) for parts in parents if len(parts) == 3 and parts[1] in FOLDERS}
    assert folders - listed == set()
    assert {f"{FOLDERS[name]}/{name}" for name in ("whenabouts_protocol", "whenabouts_hardware")} <= listed


def _exists(dotted, known):
    """True if the name is a module of the project or occurs in the text of one."""
    parent, _, name = dotted.rpartition(".")
    return dotted in known or (parent in known and re.search(rf"\b{name}\b", known[parent].read_text()) is not None)


def test_modules_and_files_in_the_documents_exist():
    """Dotted names of ours lead to a module or to a name in one, paths of code to a file."""
    known = modules()
    assert _exists("whenabouts_cloud.cep.engine", known)
    assert not _exists("whenabouts_cloud.cep.locomotive", known)
    for name, text in PAGES.items():
        dotted = set(re.findall(r"`(whenabouts_[a-z]+\.[a-z_.0-9]*[a-z_0-9])", text))
        lost = [x for x in sorted(dotted) if not _exists(x, known)]
        paths = re.findall(
            r"`((?:protocol|hardware|edge|cloud|library|firmware_sim|tests|docs|tools)/[\w./-]+\.\w+)`", text
        )
        lost += [x for x in sorted(paths) if "..." not in x and not (REPOSITORY / x).exists()]
        assert lost == [], name


@pytest.mark.parametrize(("name", "kind"), [("docs/gateways.md", "m6e"), ("docs/boards.md", "rdm6300")])
def test_configurations_in_the_recipes_are_valid(name, kind):
    """Configurations in the recipes can be copied as they are."""
    [text] = re.findall(r"```toml\n(.*?)```", PAGES[name], re.S)
    assert parse(text).readers[0].kind == kind


def test_the_rule_in_the_readme_is_the_one_of_the_demonstration(tmp_path):
    """The rule in the README compiles to the rule of the demonstration."""
    [text] = re.findall(r"```wa\n(.*?)```", PAGES["README.md"], re.S)
    shown, run = tmp_path / "shown.wa", tmp_path / "run.wa"
    shown.write_text(text)
    run.write_text(RULE.format(a=DOCK, b=DOOR))
    assert load_rules(shown).rules[0].text() == load_rules(run).rules[0].text()


def test_every_rule_in_the_reference_is_valid():
    """Each example, with the streams of the first one or its own."""
    first, *others = re.findall(r"```wa\n(.*?)```", PAGES["docs/rules.md"], re.S)
    streams = first.split("RULE")[0]
    assert len(parse_rules(first).rules) == 1
    assert len(others) >= 5
    for text in others:
        assert len(parse_rules(streams + text).rules) == 1


def test_the_reference_has_every_word_of_the_grammar():
    """A word that a rule may have is explained, outside of the grammar that the page includes."""
    text = (REPOSITORY / "cloud" / "whenabouts_cloud" / "language" / "grammar.lark").read_text()
    assert grammar.__doc__
    words = set(re.findall(r'"([A-Z]{2,})"', re.sub(r"//.*", "", text)))
    assert len(words) > 50
    assert {word for word in words if not re.search(rf"\b{word}\b", PAGES["docs/rules.md"])} == set()


def test_operating_names_every_metric_and_counter():
    """Metrics of the agent and of jobs, and counters of the ingest, as the programs call them."""
    text = PAGES["docs/operating.md"]
    source = (REPOSITORY / "edge" / "whenabouts_edge" / "health" / "metrics.py").read_text()
    names = set(re.findall(r'_(?:one|of_readers|family)\("([a-z_]+)"', source))
    assert metrics.__doc__
    assert len(names) > 15
    for metric in job_metrics([], 0):
        names.add(metric.name.removeprefix("whenabouts_job_") + "_total" * (metric.type == "counter"))
    names |= {
        m.name.removeprefix("whenabouts_ingest_")
        for m in ingest_metrics(Counters(), GatewayCounters(), {}, {}, 0, 0, True)
    }
    assert {name for name in names | set(Counters.__dataclass_fields__) if f"`{name}`" not in text} == set()


EVENT = re.compile(r"[a-z_]+\.[a-z_]+")


def _program(path):
    """The program that logs the events of a module, as the page names it."""
    if path.parts[0] == "edge":
        return {"agent"}
    if path.parts[2] == "dashboard":
        return {"dashboard"}
    if path.parts[2] == "metrics_file.py":
        return {"ingest", "job"}
    is_ingest = (
        "ingest" in path.parts[2] or path.parts[2] == "health" or path.name in ("ingest.py", "broker_options.py")
    )
    return {"ingest"} if is_ingest else {"job"}


def _events(source):
    """(event, level) of calls that log; None for a level that the call does not show, a prefix for a name put together."""
    if not re.search(r"^log = Log\(|\bNotice\(", source, re.M):
        return
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        names, levels = [call.func, *call.args], [getattr(call.func, "attr", None)]
        if call.args and ast.unparse(call.args[0]) in ("log.info", "log.warning", "log.error"):  # in a partial
            names, levels = call.args, [call.args[0].attr]
        match names[1:2]:
            case [ast.Constant(value=str(event))] if EVENT.fullmatch(event):
                pass
            case [ast.JoinedStr(values=[ast.Constant(value=str(event)), *_])] if re.fullmatch(r"[a-z_]+\.", event):
                pass
            case _:
                continue
        level = {"exception": "error"}.get(levels[0], levels[0])
        level = "warning" if ast.unparse(call.func) == "Notice" else level
        if level != "debug":
            yield event, level if level in ("info", "warning", "error") else None


def test_operating_names_every_event():
    """Each with its programs and its level, and no others."""
    logged = {}
    for path in tracked_files():
        path = path.relative_to(REPOSITORY)
        if path.suffix == ".py" and path.parts[:2] in (("edge", "whenabouts_edge"), ("cloud", "whenabouts_cloud")):
            for event, level in _events((REPOSITORY / path).read_text(encoding="utf-8")):
                programs, levels = logged.setdefault(event, (set(), set()))
                programs |= _program(path)
                levels |= {level} - {None}
    prefixes = {event for event in logged if event.endswith(".")}
    assert prefixes == {"reader.", "gateway."}
    [table] = re.findall(r"\| event \| program \| level \| when \|\n(.*?)\n\n", PAGES["docs/operating.md"], re.S)
    explained = {}
    for row in table.splitlines()[1:]:
        _, events, programs, levels, *_ = (cell.strip() for cell in row.split("|"))
        names, levels = EVENT.findall(events), levels.split(", ")
        for name, level in zip(names, levels * (len(names) if len(levels) == 1 else 1), strict=True):
            known = explained.setdefault(name, (set(), set()))
            known[0].update(programs.split(", "))
            known[1].add(level)
    assert len(logged) > 40
    direct = {event: found for event, found in logged.items() if event not in prefixes}
    assert {event for event in explained if event not in direct and not event.startswith(tuple(prefixes))} == set()
    for event, (programs, levels) in direct.items():
        assert explained[event][0] == programs, event
        assert explained[event][1] >= levels, event


@pytest.mark.parametrize(
    ("head", "schema"),
    [
        ("Landing", landing.SCHEMA),
        ("Pairs", pairs.RESULT),
        ("Matches", matches.RESULT),
        ("Counts", matches.COUNT),
        ("Verdicts", verdicts.RESULT),
        ("Side output", shard.LATE),
    ],
)
def test_every_column_of_the_landing_and_of_results_is_explained(head, schema):
    """In the order of the schema, and no other."""
    [text] = re.findall(rf"^## {head}\n(.*?)(?=^## |\Z)", PAGES["docs/data.md"], re.M | re.S)
    rows = re.findall(r"^\| (`.*?) \|", text, re.M)
    assert [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)] == schema.names


def test_decisions_are_numbered_and_dated():
    """One a file, without a gap, each in the list, with the same parts."""
    files = sorted(name for name in PAGES if re.match(r"docs/decisions/\d", name))
    assert [int(name.split("/")[-1][:4]) for name in files] == list(range(1, len(files) + 1))
    for name in files:
        assert f"({name.split('/')[-1]})" in PAGES["docs/decisions/index.md"]
        assert re.search(r"^Date: \d{4}-\d\d-\d\d\. Status: ", PAGES[name], re.M), name
        heads = re.findall(r"^## (.*)$", PAGES[name], re.M)
        assert heads == ["Context", "Decision", "What it is not", "Consequences"], name
