"""The law of merging: what could be read is there afterwards, in some file."""

from whenabouts_sim.chaos.checks.landing.merging import undamaged


def part(place, **files):
    folder = place / "hour=2025-06-15T15"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"part-{name.replace('_', '-')}.parquet").write_bytes(content)
    return folder


def test_a_merged_file_holds_the_numbers_of_its_originals(tmp_path):
    folder = part(tmp_path, **{"000000000001": b"a", "000000000002": b"b"})
    both = {(folder, 1), (folder, 2)}
    assert undamaged(tmp_path, {}) == both
    for path in folder.iterdir():
        path.unlink()
    part(tmp_path, **{"000000000001_000000000002": b"ab"})
    assert undamaged(tmp_path, {}) == both


def test_a_changed_file_holds_nothing_until_it_is_written_again(tmp_path):
    folder = part(tmp_path, **{"000000000001": b"changed", "000000000002": b"b"})
    before = {folder / "part-000000000001.parquet": b"a"}
    assert undamaged(tmp_path, before) == {(folder, 2)}
    part(tmp_path, **{"000000000001": b"a"})
    assert undamaged(tmp_path, before) == {(folder, 1), (folder, 2)}
