"""The plan of flashing, made from a board's files: resumes after an interruption, never leaves a mixture that starts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.flash import FlashError
from whenabouts_edge.flash.boards import board
from whenabouts_edge.flash.plan import (
    CONFIG_PATH,
    MAIN_PATH,
    MPY_VERSION,
    File,
    Seen,
    contents,
    differing,
    is_ours,
    plan,
    refuse,
    refuse_full,
)

PICO = board("pico_w")
MODULES = {
    "whenabouts_edge/__init__.mpy": b"e",
    "whenabouts_edge/board/run.mpy": b"run" * 99,
    "whenabouts_protocol/a.mpy": b"a",
}
FILES = contents(MODULES, b'{"site": "s"}', {"/ca.pem": b"ca"})
FOLDERS = ("/lib", "/lib/whenabouts_edge", "/lib/whenabouts_edge/board", "/lib/whenabouts_protocol")


def holds(files=(), folders=(), free=800_000, **more):
    """A board that holds these files."""
    facts = {
        "platform": "rp2",
        "machine": "Raspberry Pi Pico W with RP2040",
        "firmware": "1.27.0",
        "mpy_version": MPY_VERSION,
    }
    held = {file.path: (len(file.data), file.sha256) for file in files}
    return Seen(**{**facts, "free_bytes": free, "files": held, "folders": frozenset(folders), **more})


def carried_out(what, seen, steps=None):
    """The board's files after so many steps of a plan; after all if no number is given."""
    files = {path: File(path, b"?" * size) for path, (size, _) in seen.files.items()}
    folders = set(seen.folders)
    by_path = {file.path: file for file in FILES}
    kept = {path for path, entry in seen.files.items() if path in by_path and entry[1] == by_path[path].sha256}
    files |= {path: by_path[path] for path in kept}
    if what.detach:
        files.pop(MAIN_PATH, None)
    for step in what.steps[:steps]:
        if step.verb == "remove":
            del files[step.path]
        elif step.verb == "folder":
            assert step.path.rpartition("/")[0] in {"", *folders}, "a folder before the one that it is in"
            folders.add(step.path)
        elif step.verb == "copy":
            assert step.path.rpartition("/")[0] in {"", *folders}, "a file before its folder"
            files[step.path] = by_path[step.path]
    return holds(files.values(), folders)


def test_an_empty_board_gets_folders_then_modules_then_configuration_then_the_main_program():
    """Nothing to take away, so no restart before."""
    what = plan(FILES, holds())
    assert not what.detach
    assert [step.path for step in what.of("folder")] == list(FOLDERS)
    assert [step.path for step in what.of("copy")][-3:] == ["/ca.pem", CONFIG_PATH, MAIN_PATH]
    assert [step.verb for step in what.steps] == ["folder"] * 4 + ["copy"] * 6


def test_a_board_that_holds_all_is_not_changed():
    """Flashing twice copies nothing the second time."""
    what = plan(FILES, carried_out(plan(FILES, holds()), holds()))
    assert what.is_empty
    assert not what.detach


@pytest.mark.parametrize("steps", range(11))
def test_an_interrupted_flash_goes_on(steps):
    """
    steps   1 2 3 | killed
    again         | 4 5 ...      copies what is not there, and the main program is there only when all else is
    """
    first = plan(FILES, holds())
    left = carried_out(first, holds(), steps)
    second = plan(FILES, left)
    assert [*first.steps[:steps], *(s for s in second.steps if s.verb != "keep")] == list(first.steps)
    assert (MAIN_PATH in left.files) == (steps == 10)
    assert plan(FILES, carried_out(second, left)).is_empty


def test_a_torn_file_is_copied_again():
    """Half of a module is there under its name."""
    there = carried_out(plan(FILES, holds()), holds())
    torn = File("/lib/whenabouts_edge/board/run.mpy", b"ru")
    seen = holds([*(f for f in FILES if f.path != torn.path), torn], there.folders)
    what = plan(FILES, seen)
    assert [step.path for step in what.of("copy")] == [torn.path, MAIN_PATH]
    assert what.detach
    assert differing(FILES, seen) == [
        f"{torn.path}: found 2 bytes with hash {torn.sha256[:12]}, expected 297 with {FILES[1].sha256[:12]}"
    ]


def test_the_main_program_goes_first_and_comes_last():
    """A board that runs is not started between two versions: a watchdog may restart it at any time."""
    old = [File(MAIN_PATH, b"old"), File("/lib/whenabouts_edge/__init__.mpy", b"old")]
    what = plan(FILES, holds(old, FOLDERS))
    assert what.detach
    assert what.steps[-1].path == MAIN_PATH
    for steps in range(len(what.steps)):
        assert MAIN_PATH not in carried_out(what, holds(old, FOLDERS), steps).files


def test_what_would_be_imported_before_ours_is_removed():
    """Sources beside compiled modules, modules of another version, packages at the top; nothing of others."""
    stale = ["/lib/whenabouts_edge/board/run.py", "/lib/whenabouts_hardware/gone.mpy", "/whenabouts_edge/__init__.py"]
    others = ["/boot.py", "/lib/umqtt/simple.py", "/whenabouts.txt", "/spool/0", "/lib/whenabouts_other/x.py"]
    what = plan(FILES, holds([File(path, b"x") for path in [*stale, *others]], FOLDERS))
    assert [step.path for step in what.of("remove")] == stale
    assert not any(is_ours(path) for path in others)


@given(st.sets(st.sampled_from([file.path for file in FILES])), st.sets(st.sampled_from([file.path for file in FILES])))
def test_whatever_is_there_the_plan_ends_in_the_same_board(there, damaged):
    """Any files there, any of them with other content: carried out, nothing differs and nothing is left to do."""
    files = [File(f.path, f.data + b"!" if f.path in damaged else f.data) for f in FILES if f.path in there]
    seen = holds(files, FOLDERS)
    after = carried_out(plan(FILES, seen), seen)
    assert differing(FILES, after) == []
    assert plan(FILES, after).is_empty
    missing = [f.path for f in FILES if f.path not in there or f.path in damaged]
    if missing and missing[-1] != MAIN_PATH:  # it was taken away
        missing.append(MAIN_PATH)
    assert [step.path for step in plan(FILES, seen).of("copy")] == missing


def test_another_board_or_firmware_is_refused():
    """An ESP32 where a Pico W was named, a newer ESP32 where an older was, a format of old."""
    refuse(PICO, "/dev/ttyACM0", holds())
    with pytest.raises(
        FlashError, match=r"found Generic ESP32 module with ESP32 \(esp32\), expected Raspberry Pi Pico W"
    ):
        refuse(PICO, "/dev/ttyACM0", holds(platform="esp32", machine="Generic ESP32 module with ESP32"))
    with pytest.raises(FlashError, match="ESP32S3"):
        refuse(board("esp32"), "p", holds(platform="esp32", machine="Generic ESP32S3 module with ESP32S3"))
    with pytest.raises(FlashError, match=r"firmware 1\.27\.0, which reads compiled files of version 5, expected 6"):
        refuse(PICO, "p", holds(mpy_version=5))


def test_a_full_board_is_refused_before_anything_is_copied():
    """
    each file takes whole blocks: six files and four folders of two blocks, 14 blocks of 4096 bytes
    """
    seen = holds(free=14 * 4096)
    refuse_full(PICO, FILES, plan(FILES, seen), seen)
    seen = holds(free=14 * 4096 - 1)
    with pytest.raises(FlashError, match="found 57343 bytes free, expected 57344; remove files of others"):
        refuse_full(PICO, FILES, plan(FILES, seen), seen)
    seen = holds([File("/lib/whenabouts_edge/old.mpy", b"x" * 4097)], free=12 * 4096)
    refuse_full(PICO, FILES, plan(FILES, seen), seen)
    refuse_full(PICO, FILES, plan(FILES, holds(free=None)), holds(free=None))


def test_files_that_leave_no_room_for_readings_are_refused():
    """However empty the board is."""
    large = [*FILES, File("/lib/large", b"x" * 600_000)]
    with pytest.raises(FlashError, match=r"found 868352 bytes, expected \d+ for files and waiting readings"):
        refuse_full(PICO, large, plan(large, holds()), holds(free=868_352))
