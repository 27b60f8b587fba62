"""Code objects by content: damage, read-only and unwritable folders, a full disk, locks, prebuilt objects."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
import warnings
from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import LoadError, ToolMissing
from dsv4gen.base.prebuilt import binary_name, record_name, record_text
from dsv4gen.runtime import cache as cache_module
from dsv4gen.runtime import compilers
from dsv4gen.runtime.cache import Cache, Key
from tests.runtime import stubs, synthetic
from tests.runtime.stubs import StubDriver

KEY = Key("source", "symbol", ("-a", "-b"))


def _call(family: str = "demo") -> None:
    dsv4gen.load(family)(torch.zeros(2, 8), scale=1.0)


def _entries(root: Path) -> list[Path]:
    return sorted((root / "code").rglob("*.cubin"))


@pytest.fixture
def compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one line per compile."""
    path = tmp_path / "compiles.log"
    path.touch()
    monkeypatch.setenv("STUB_COMPILE_LOG", str(path))
    return path


def _count(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_every_field_of_the_key_changes_it() -> None:
    keys = [KEY, Key("Source", "symbol", ("-a", "-b")), Key("source", "Symbol", ("-a", "-b"))]
    keys += [
        Key("source", "symbol", ("-a-b",)),
        Key("source", "symbol", ("-b", "-a")),
        Key("sources", "ymbol", ("-a", "-b")),
    ]
    assert len({key.digest for key in keys}) == len(keys)
    assert len(Key.__dataclass_fields__) == 3, "a new field needs a line here"


def test_an_entry_is_found_again_and_only_for_its_compiler(tmp_path: Path) -> None:
    cache = Cache((tmp_path / "a",))
    cache.put(KEY, "one", "cubin", b"code", {})
    assert cache.get(KEY, "one", "cubin") == b"code"
    assert cache.get(KEY, "two", "cubin") is None
    assert cache.get(KEY, "", "cubin") == b"code"
    assert cache.get(KEY, "one", "hsaco") is None


@pytest.mark.usefixtures("generated", "host")
@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "header", "text"])
def test_a_damaged_entry_is_compiled_again_and_replaced(
    damage: str, cuda: StubDriver, compiles: Path, tmp_path: Path
) -> None:
    _call()
    (entry,) = _entries(tmp_path / "cache")
    good = entry.read_bytes()
    bad = {
        "truncate": good[:-20],
        "flip": good[:-1] + bytes([good[-1] ^ 1]),
        "empty": b"",
        "header": b"{}\n" + good.partition(b"\n")[2],
        "text": b"not an entry at all",
    }[damage]
    entry.write_bytes(bad)
    _call()
    assert _count(compiles) == 2 and entry.read_bytes() == good and cuda.count("launches") == 2


def test_a_read_that_fails_once_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache((tmp_path,))
    cache.put(KEY, "one", "cubin", b"code", {})
    original, failures = Path.read_bytes, [OSError(errno.ESTALE, "stale")]

    def flaky(path: Path) -> bytes:
        if failures:
            raise failures.pop()
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", flaky)
    assert cache.get(KEY, "one", "cubin") == b"code"


def _deny(monkeypatch: pytest.MonkeyPatch, *folders: Path, code: int = errno.EACCES) -> None:
    """Make creating folders and files below some folders fail, as permissions would for anyone but root."""
    real_mkdir, real_open = Path.mkdir, os.open

    def inside(path: object) -> bool:
        return any(Path(os.fspath(path)).is_relative_to(folder) for folder in folders)  # type: ignore[call-overload]

    def mkdir(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if inside(path) and not path.is_dir():
            raise OSError(code, os.strerror(code))
        real_mkdir(path, mode, parents, exist_ok)

    def opened(path: str, flags: int, *rest: int, **named: int) -> int:
        if flags & os.O_CREAT and inside(path):
            raise OSError(code, os.strerror(code))
        return real_open(path, flags, *rest, **named)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    monkeypatch.setattr(os, "open", opened)


@pytest.mark.usefixtures("generated", "host")
def test_an_unwritable_home_falls_back_with_one_warning(
    cuda: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _deny(monkeypatch, tmp_path / "cache")
    with pytest.warns(RuntimeWarning, match="compiled kernels go to .*Permission denied") as caught:
        _call()
        _call()
    assert len(caught) == 1 and cuda.count("launches") == 2
    fallback = tmp_path / f"dsv4gen-{os.getuid()}"
    assert len(_entries(fallback)) == 1
    assert stat.S_IMODE(fallback.stat().st_mode) == 0o700


@pytest.mark.usefixtures("generated", "host")
def test_a_full_disk_costs_the_cache_and_not_the_call(
    cuda: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match="are not kept.*No space left.*DSV4GEN_CACHE_DIR"):
        _call()
    assert cuda.count("launches") == 1
    left = [path for path in tmp_path.rglob("*") if path.is_file() and "code" in path.parts]
    assert not left


@pytest.mark.usefixtures("generated", "host")
def test_a_read_only_cache_is_a_hit(
    cuda: StubDriver, compiles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _call()
    _deny(monkeypatch, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _call()
    assert _count(compiles) == 1 and cuda.count("launches") == 2


@pytest.mark.usefixtures("generated", "host")
def test_a_cached_kernel_needs_no_compiler(
    cuda: StubDriver, build: stubs.Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    _call()
    stubs.place(monkeypatch, build("libcuda.so.1"))
    _call()
    assert cuda.count("launches") == 2
    with pytest.raises(ToolMissing, match="NVRTC cannot be loaded"):
        dsv4gen.load("demo")(torch.zeros(2, 2000), scale=1.0)


def test_a_folder_prepared_by_a_stranger_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / f"dsv4gen-{os.getuid()}"
    cache = Cache((shared,))
    assert cache.put(KEY, "one", "cubin", b"code", {}) is not None
    shared.chmod(0o777)
    assert cache.get(KEY, "one", "cubin") is None
    with pytest.warns(RuntimeWarning, match="others can write"):
        assert cache.put(KEY, "one", "cubin", b"code", {}) is None


def test_waiting_for_a_lock_ends(tmp_path: Path) -> None:
    cache = Cache((tmp_path,))
    with cache.lock(KEY) as held:
        assert held
        started = time.monotonic()
        with cache.lock(KEY, timeout_s=0.1) as second:
            assert not second
        assert time.monotonic() - started < 5
    with cache.lock(KEY, timeout_s=1) as third:
        assert third


def test_an_old_lock_file_means_nothing(tmp_path: Path) -> None:
    cache = Cache((tmp_path,))
    with cache.lock(KEY):
        pass
    (lock,) = (tmp_path / "locks").iterdir()
    os.utime(lock, (0, 0))
    with cache.lock(KEY, timeout_s=0.1) as held:
        assert held
    assert lock.exists(), "lock files are never removed"


def test_a_file_system_without_locks_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, __: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with Cache((tmp_path,)).lock(KEY) as held:
        assert not held


@pytest.mark.usefixtures("generated", "host")
def test_threads_compile_a_kernel_once(cuda: StubDriver, compiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_COMPILE_MS", "100")
    threads = [threading.Thread(target=_call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cuda.count("launches") == 6 and _count(compiles) == 1


@pytest.mark.usefixtures("generated", "host")
def test_the_order_of_builds_does_not_change_keys(
    cuda: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for order, root in (((8, 2000), "one"), ((2000, 8), "two")):
        monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path / root))
        for width in order:
            dsv4gen.load("demo")(torch.zeros(2, width), scale=1.0)
        found.append({path.name: path.read_bytes() for path in _entries(tmp_path / root)})
    assert found[0] == found[1] and len(found[0]) == 2 and cuda.count("launches") == 4


@pytest.fixture
def prebuilt(generated: Path, cuda: StubDriver) -> Path:  # noqa: ARG001
    """A code object beside the sources, as `build --compile` makes it."""
    folder = generated / "sm_90"
    source = (folder / "demo.cu").read_bytes()
    binary = b"\x7fELF" + bytes(14) + b"\xbe\0" + bytes(44) + source
    (folder / binary_name("demo", "sm_90a", "cuda")).write_bytes(binary)
    (folder / record_name("demo", "sm_90a")).write_text(record_text(source, binary, "NVRTC 13.5"), encoding="utf-8")
    return folder


@pytest.mark.usefixtures("prebuilt", "host")
def test_a_prebuilt_object_comes_first(
    cuda: StubDriver, compiles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSV4GEN_NO_COMPILE", "1")
    _call()
    dsv4gen.load("demo")(torch.zeros(2, 2000), scale=1.0)
    assert _count(compiles) == 0 and cuda.count("launches") == 2 and cuda.count("modules") == 1
    assert not (tmp_path / "cache").exists()


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("defect", ["source", "binary", "record", "machine"])
def test_a_prebuilt_object_that_does_not_fit_is_passed_over(
    defect: str, prebuilt: Path, cuda: StubDriver, compiles: Path, caplog: pytest.LogCaptureFixture
) -> None:
    binary, record = prebuilt / "demo.sm_90a.cubin", prebuilt / "demo.sm_90a.json"
    if defect == "source":
        record.write_text(record_text(b"older", binary.read_bytes(), "NVRTC"), encoding="utf-8")
    if defect == "binary":
        binary.write_bytes(binary.read_bytes() + b"x")
    if defect == "record":
        record.unlink()
    if defect == "machine":
        other = b"\x7fELF" + bytes(14) + b"\xe0\0" + bytes(44) + b"demo_small"
        binary.write_bytes(other)
        record.write_text(record_text((prebuilt / "demo.cu").read_bytes(), other, "clang"), encoding="utf-8")
    _call()
    assert _count(compiles) == 1 and cuda.count("launches") == 1
    assert "is not used" in caplog.text and "build --compile" in caplog.text


@pytest.mark.usefixtures("generated", "host")
def test_no_compile_says_what_is_missing(cuda: StubDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_NO_COMPILE", "1")
    with pytest.raises(LoadError, match=r"no prebuilt code object for sm_90a.*DSV4GEN_NO_COMPILE") as caught:
        _call()
    assert "dsv4gen build --compile" in str(caught.value) and cuda.count("launches") == 0


@pytest.mark.usefixtures("generated", "host")
def test_a_bad_code_object_is_neither_kept_nor_loaded(
    cuda: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_COMPILE_GARBAGE", "1")
    with pytest.raises(Exception, match=r"made a bad code object: .* no ELF file"):
        _call()
    assert not _entries(tmp_path / "cache") and cuda.count("modules") == 0


@pytest.mark.usefixtures("cuda", "host")
def test_an_edited_source_does_not_load(generated: Path) -> None:
    (generated / "sm_90" / "demo.cu").write_text(synthetic.source_text(extra="// mine"), encoding="utf-8")
    with pytest.raises(Exception, match=r"demo\.cu \(edited\)"):
        dsv4gen.load("demo")


def test_compiler_identity_does_not_depend_on_its_folder(tmp_path: Path, build: stubs.Builder) -> None:
    library = build("libnvrtc.so.13")
    moved = tmp_path / "elsewhere" / library.name
    moved.parent.mkdir()
    moved.write_bytes(library.read_bytes())
    assert stubs.found(library).identity == stubs.found(moved).identity
    assert compilers.options("cuda", "sm_90a")[0] == "--gpu-architecture=sm_90a"


def test_warnings_are_given_once() -> None:
    with pytest.warns(RuntimeWarning) as caught:
        cache_module._warn_once("the same")
        cache_module._warn_once("the same")
    assert len(caught) == 1
