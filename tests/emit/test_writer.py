"""A target's folder is whole or refused by name: kills, full disks, strangers, two builds at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from dsv4gen.base.errors import ManifestError, OutputError
from dsv4gen.base.manifest import FILE_NAME, SCHEMA, Manifest, digest_bytes, read_manifest, require_intact
from dsv4gen.emit import writer
from dsv4gen.emit.writer import JOURNAL, write_tree

TARGET = {"name": "t", "api": "cuda", "arch": "sm_90", "also": [], "facts": {}}


def manifest_of(files: dict[str, bytes]) -> Manifest:
    outputs = {name: digest_bytes(data) for name, data in files.items()}
    return Manifest({"schema": SCHEMA, "target": TARGET, "families": [], "outputs": outputs}, {})


def write(folder: Path, files: dict[str, bytes]) -> list[str]:
    return write_tree(folder, files, manifest_of(files))


ONE = {"a.hip": b"one", "maps/a.hip.json": b"{}"}
TWO = {"a.hip": b"two", "b.py": b"b"}


def test_a_second_write_changes_nothing_and_keeps_time_stamps(tmp_path: Path) -> None:
    assert write(tmp_path, ONE) == ["a.hip", FILE_NAME, "maps/a.hip.json"]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert write(tmp_path, ONE) == []
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}


def test_only_changed_files_are_written_and_listed_orphans_removed(tmp_path: Path) -> None:
    write(tmp_path, {**ONE, "same.py": b"s"})
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert write(tmp_path, {**TWO, "same.py": b"s"}) == ["a.hip", "b.py", FILE_NAME, "maps/a.hip.json"]
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "maps/a.hip.json").exists()
    require_intact(read_manifest(tmp_path), tmp_path)


def test_a_folder_of_strangers_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x", encoding="utf-8")
    with pytest.raises(OutputError, match="not made by dsv4gen"):
        write(tmp_path, ONE)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("survivors", [0, 1, 2, 3])
def test_a_build_cut_short_is_refused_by_name_and_repaired_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivors: int
) -> None:
    write(tmp_path, ONE)
    real, renames = os.replace, []

    def dies(source: Path, destination: Path) -> None:
        renames.append(destination)
        if len(renames) > survivors + 1:  # the first rename is the journal's
            raise KeyboardInterrupt
        real(source, destination)

    monkeypatch.setattr(writer.os, "replace", dies)
    if survivors < len(TWO) + 1:
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path, TWO)
    monkeypatch.undo()
    if 0 < survivors < len(TWO) + 1:
        with pytest.raises(ManifestError, match=r"a\.hip \(edited\)"):
            require_intact(read_manifest(tmp_path), tmp_path)
    write(tmp_path, TWO)
    require_intact(read_manifest(tmp_path), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.hip", "b.py", FILE_NAME]


def test_a_killed_first_build_is_recognised_as_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "stage", _dies_on("manifest.json", writer.stage))
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, ONE)
    monkeypatch.undo()
    (tmp_path / "a.hip").write_bytes(b"half")
    with pytest.raises(ManifestError, match="no manifest"):
        read_manifest(tmp_path)
    write(tmp_path, ONE)
    require_intact(read_manifest(tmp_path), tmp_path)
    assert not (tmp_path / JOURNAL).exists()


def _dies_on(name: str, real):  # type: ignore[no-untyped-def]
    def stage(path: Path, data: bytes) -> Path:
        if path.name == name:
            raise KeyboardInterrupt
        return real(path, data)

    return stage


def test_a_full_disk_is_an_error_that_leaves_the_old_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, ONE)
    real = os.fsync

    def full(handle: int) -> None:
        if os.fstat(handle).st_size == len(b"two"):
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(writer.os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write(tmp_path, TWO)
    require_intact(read_manifest(tmp_path), tmp_path)
    assert (tmp_path / "a.hip").read_bytes() == b"one"
    assert not list(tmp_path.rglob(".dsv4gen-staged-*"))


def test_a_read_only_folder_is_an_error_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", denied)
    with pytest.raises(OutputError, match="Permission denied") as caught:
        write(tmp_path, ONE)
    assert "--out" in caught.value.remedy


KILLED = """
    import sys, pathlib
    from dsv4gen.base.manifest import SCHEMA, Manifest, digest_bytes
    from dsv4gen.emit.writer import write_tree
    TARGET = {"name": "t", "api": "cuda", "arch": "sm_90", "also": [], "facts": {}}
    HEAD = {"schema": SCHEMA, "target": TARGET, "families": []}
    folder = pathlib.Path(sys.argv[1])
    print("ready", flush=True)
    for turn in range(10000):
        files = {f"f{n}.hip": (b"%d" % turn) * 20000 for n in range(6)}
        outputs = {name: digest_bytes(data) for name, data in files.items()}
        write_tree(folder, files, Manifest({**HEAD, "outputs": outputs}, {}))
"""


@pytest.mark.parametrize("delay_ms", [3, 11, 37])
def test_after_kill_9_the_tree_is_whole_or_refused_and_the_next_build_repairs_it(tmp_path: Path, delay_ms: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay_ms / 1000)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    try:
        require_intact(read_manifest(tmp_path), tmp_path)
    except ManifestError as error:
        assert "manifest" in error.message
    write(tmp_path, ONE)
    require_intact(read_manifest(tmp_path), tmp_path)
    assert not list(tmp_path.rglob(".dsv4gen-staged-*"))
