"""Entries are published whole, checked when read, and a cache that cannot be written is no obstacle."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dsv4gen.base.errors import OutputError
from dsv4gen.toolchain import store as store_module
from dsv4gen.toolchain.store import Store, content_key


def test_each_part_changes_the_key_and_parts_do_not_run_together() -> None:
    base = content_key(("source", "-O3", "clang 22"))
    assert base == content_key(("source", "-O3", "clang 22"))
    assert len({base, content_key(("source-O3", "", "clang 22")), content_key(("source", "-O2", "clang 22"))}) == 3


def test_put_then_get(tmp_path: Path) -> None:
    kept = Store.open("test", tmp_path)
    key = content_key(("a",))
    assert kept.get(key) is None
    folder = kept.put(key, {"code": b"\x00\x01", "text": b""})
    assert kept.get(key) == folder
    assert (folder / "code").read_bytes() == b"\x00\x01"
    assert sorted(path.name for path in folder.parent.iterdir()) == [key], "no staging folder may stay behind"


@pytest.mark.parametrize("damage", ["shorten", "remove", "garble entry", "no entry"])
def test_a_damaged_entry_is_absent_and_can_be_replaced(tmp_path: Path, damage: str) -> None:
    kept = Store.open("test", tmp_path)
    key = content_key(("a",))
    folder = kept.put(key, {"code": b"good"})
    if damage == "shorten":
        (folder / "code").write_bytes(b"goo")
    elif damage == "remove":
        (folder / "code").unlink()
    elif damage == "garble entry":
        (folder / "entry.json").write_text("{")
    else:
        (folder / "entry.json").unlink()
    assert kept.get(key) is None
    kept.put(key, {"code": b"good"})
    assert (folder / "code").read_bytes() == b"good"
    assert kept.get(key) == folder


def test_writers_at_the_same_time_leave_one_entry(tmp_path: Path) -> None:
    kept = Store.open("test", tmp_path)
    key = content_key(("a",))
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: kept.put(key, {"code": b"x" * 10000}), range(32)))
    assert set(folders) == {kept.get(key)}
    assert [path.name for path in folders[0].parent.iterdir()] == [key]


def test_the_next_root_is_used_with_one_warning(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    kept = Store("test", (blocked / "root", tmp_path / "second"))
    store_module._warned.clear()
    with pytest.warns(RuntimeWarning, match="second") as warned:
        kept.put(content_key(("a",)), {"code": b"1"})
        folder = kept.put(content_key(("b",)), {"code": b"2"})
    assert len(warned) == 1
    assert kept.get(content_key(("b",))) == folder


def test_no_writable_root_names_what_was_tried(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(OutputError, match="file/root") as raised:
        Store("test", (blocked / "root",)).put(content_key(("a",)), {"code": b"1"})
    assert "DSV4GEN_CACHE_DIR" in raised.value.remedy


def test_a_read_only_cache_is_a_hit_and_stays_as_it_is(tmp_path: Path) -> None:
    kept = Store.open("test", tmp_path / "prebuilt")
    key = content_key(("a",))
    folder = kept.put(key, {"code": b"good"})
    for path in (folder / "code", folder, folder.parent, tmp_path / "prebuilt"):
        path.chmod(0o555)
    before = sorted((tmp_path / "prebuilt").rglob("*"))
    assert kept.get(key) == folder
    assert sorted((tmp_path / "prebuilt").rglob("*")) == before


@pytest.mark.parametrize(("mode", "trusted"), [(0o755, True), (0o777, False)])
def test_a_temporary_folder_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, trusted: bool
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    fallback = tmp_path / f"dsv4gen-{os.getuid()}"
    fallback.mkdir()
    fallback.chmod(mode)
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store_module._warned.clear()
    if trusted:
        with pytest.warns(RuntimeWarning, match="compiled results go to"):
            assert Store.open("test").put("ab" * 32, {"code": b"1"}).is_relative_to(fallback)
    else:
        with pytest.raises(OutputError, match="can be written"):
            Store.open("test").put("ab" * 32, {"code": b"1"})
        assert not list(fallback.iterdir())
