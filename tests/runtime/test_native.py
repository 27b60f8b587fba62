"""What only the extension has: its exchange with torch and the driver, and the ways in which it stands back."""

from __future__ import annotations

import ctypes
import gc
import resource
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsv4gen
from dsv4gen.base import env
from dsv4gen.base.errors import ArgumentError, DriverError
from dsv4gen.runtime import build_native, native, sharing
from dsv4gen.runtime.platform import HostPlatform, use
from dsv4gen.runtime.read_table import make_table
from tests.runtime import stubs, synthetic
from tests.runtime.stubs import StubDriver
from tests.runtime.test_repeat import LAUNCH, Recorder, plain_call
from tests.tools import need_extension

DTYPES = (torch.float32, torch.int32, torch.uint8, torch.int64)


@pytest.fixture(autouse=True)
def in_use(extension: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here has the extension."""
    monkeypatch.setattr(native, "find", lambda: native.Found(extension))


def test_the_extension_lies_where_installing_put_it(tmp_path: Path) -> None:
    """Elsewhere it is optional; where all tools must be there, the editable install has to have built it."""
    need_extension(tmp_path)
    found = native._find()
    if found.module is None and env.flag(env.REQUIRE_TOOLS):
        pytest.fail(found.reason, pytrace=False)


# ---- which calls it takes


class Twice:
    """One op with and without the extension, and what a first call without it would do."""

    def __init__(self, checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fast = Recorder("dual", checked=checked)
        with monkeypatch.context() as patch:
            patch.setattr(native, "find", lambda: native.Found(None))
            self.slow, self.fresh = (Recorder("dual", checked=checked) for _ in range(2))

    def remember(self, call: Mapping[str, Any]) -> None:
        """Let both short ways know a call."""
        for topk in (self.fast, self.slow):
            topk.launched(call)

    def agree(self, call: Mapping[str, Any]) -> str | bytes:
        """The outcome, which must be one and the same."""
        self.fresh.memories.known = ()
        outcomes = [_outcome(topk, call) for topk in (self.fast, self.slow, self.fresh)]
        assert outcomes[0] == outcomes[1] == outcomes[2]
        return outcomes[0]


def _outcome(topk: Recorder, call: Mapping[str, Any]) -> str | bytes:
    try:
        return topk.launched(call)
    except (ArgumentError, RuntimeError, TypeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _other(draw: Callable[..., Any], call: Mapping[str, Any], name: str, others: list[str], memory: bytearray) -> Any:
    """Something else in place of an argument; most of it in one small piece of memory, so that much of it overlaps."""
    old = call[name]
    kind = draw(st.sampled_from(["moved", "moved", "view", "another", "none", "no memory"]))
    if old is None or (kind == "none" and "out" not in name):
        return None
    if kind in ("another", "none"):
        return call[draw(st.sampled_from(others))]
    if kind == "no memory":
        bare = torch.zeros_like(old)
        bare.untyped_storage().resize_(0)
        return bare
    dtype = old.dtype if kind == "moved" else draw(st.sampled_from(DTYPES))
    offset = draw(st.integers(0, 80))
    whole = torch.frombuffer(memory, dtype=dtype, offset=offset, count=(len(memory) - offset) // dtype.itemsize)
    if kind == "moved":
        return whole.as_strided(old.shape, old.stride())
    sizes = [draw(st.integers(0, 4)) for _ in range(draw(st.integers(1, 2)))]
    return whole.as_strided(sizes, [draw(st.sampled_from([0, 1, 2, 4])) for _ in sizes])


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), checked=st.booleans())
def test_it_accepts_nothing_that_the_other_ways_refuse(
    data: st.DataObject, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments overlap, lie askew, change dtype and shape, are left out or have no memory."""
    twice = Twice(checked, monkeypatch)
    memory = bytearray(2048)
    call = plain_call(twice.fast.table, width=4, rows=2, k=2)
    twice.remember(call)
    names = list(twice.fast.table.memory)
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4)):
        others = [other for other in names if call[other] is not None]
        call = {**call, name: _other(data.draw, call, name, others, memory)}
        twice.agree(call)
    twice.agree({**call, "k": data.draw(st.sampled_from([None, 2, 3, True, 2.0]))})


@pytest.mark.parametrize("checked", [True, False])
def test_numbers_streams_and_devices_make_another_call(checked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Twice(checked, monkeypatch)
    call = plain_call(twice.fast.table)
    twice.remember(call)
    for k in (8, None, 8.0, True, "8", torch.tensor(8)) if checked else (8, None):
        twice.agree({**call, "k": k})
    for stream in (0, 7, 2**63 + 5, 0):
        twice.fast.stream = twice.slow.stream = twice.fresh.stream = stream
        twice.agree(call)


class _Sub(torch.Tensor):
    pass


def _odd_tensors() -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """Tensors whose class, keys or memory are not those of a plain one, made of a plain float matrix."""
    return {
        "subclass": lambda plain: plain.as_subclass(_Sub),
        "parameter": torch.nn.Parameter,
        "requires grad": lambda plain: plain.clone().requires_grad_(),
        "view to negate": lambda plain: torch.complex(plain, plain).conj().imag,
        "conjugate": lambda plain: torch.complex(plain, plain).conj(),
        "zero without memory": lambda plain: torch._efficientzerotensor(plain.shape),
        "functional": torch._to_functional_tensor,
        "sparse": lambda plain: plain.to_sparse(),
        "meta": lambda plain: plain.to("meta"),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", _odd_tensors())
def test_odd_tensors_get_what_the_long_way_gives_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that torch negates lazily is among them: memory is read as it is, whichever way."""
    twice = Twice(True, monkeypatch)
    call = plain_call(twice.fast.table)
    odd = _odd_tensors()[name](call["scores"])
    twice.remember(call)
    twice.agree({**call, "scores": odd})
    if name == "view to negate":
        plain = torch.zeros(2 * odd.numel()).view(*odd.shape, 2)[..., 1]
        assert plain.stride() == odd.stride() and odd.is_neg()
        twice.agree({**call, "scores": plain})
        twice.agree({**call, "scores": odd})


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_read_goes_the_long_way() -> None:
    """torch's own comparison ends the process over a nested tensor; with the extension it is not asked."""
    known, fresh = Recorder("dual"), Recorder("dual")
    call = plain_call(known.table)
    known.launched(call)
    nested = {**call, "scores": torch.nested.nested_tensor(list(call["scores"]))}
    assert _outcome(known, nested) == _outcome(fresh, nested)


def test_tensors_inside_of_a_transform_are_left_to_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Twice(True, monkeypatch)
    call = plain_call(twice.fast.table)
    twice.remember(call)
    seen = []

    def inside(scores: torch.Tensor) -> torch.Tensor:
        seen.append(twice.agree({**call, "scores": scores}))
        return scores

    torch.func.vmap(inside)(torch.zeros(2, 3, 96))
    torch.func.grad(lambda scores: inside(scores).sum())(torch.zeros(3, 96))
    torch.func.functionalize(inside)(torch.zeros(3, 96))
    assert len(seen) == 3 and all(isinstance(outcome, str) for outcome in seen)


@pytest.mark.parametrize("in_place", [True, False])
def test_only_the_tensor_itself_or_a_distance_that_passed_is_in_place(in_place: bool) -> None:
    plain = make_table("demo", synthetic.demo_family(), "run", {"mode": "plain"})
    rules = [rule._replace(in_place=("data",) if in_place and rule.role == "out" else ()) for rule in plain.tensors]
    table = plain._replace(tensors=tuple(rules))
    data, out = torch.zeros(8, 8), torch.zeros(8, 8)

    def again(passed: set[tuple[int, int]], *tensors: Any) -> bool | None:
        calls = native.make_calls(table, LAUNCH(lambda *_: 0), True, True, lambda _: 0, None, lambda *_: None)
        assert calls is not None
        spans = (data.nbytes, out.nbytes, 0, -out.nbytes, 0)
        twin = calls.make((data, out, None), (1.0,), -1, (0, (), bytes(table.size), None, *spans, frozenset(passed)))
        assert twin is not None
        calls.know((twin,))
        return calls.again(*tensors, None, 1.0)

    (number,) = (n for n, pair in enumerate(sharing.pairs(table)) if (pair.written, pair.other) == ("out", "data"))
    assert again(set(), data, out) is True
    assert again(set(), data, data) is in_place
    assert again(set(), data, data.view_as(data)) is False
    assert again({(number, 0)}, data, data.view_as(data)) is True
    assert again({(number, 4), (number + 1, 0)}, data, data.view_as(data)) is False


# ---- what it asks torch


class _Exchange(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("unused", ctypes.c_void_p * 3),
        ("read", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


def _capsule(table: _Exchange) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(table), b"dlpack_exchange_api", None)


def _torchs_table() -> _Exchange:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return _Exchange.from_address(pointer(native.exchange(), b"dlpack_exchange_api"))


def test_streams_of_cuda_come_from_the_exchange_table(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, asked = 0, []

    def current(device_type: int, device: int, out: Any) -> int:
        asked.append((device_type, device))
        out[0] = stream
        return 0

    table = _Exchange.from_buffer_copy(_torchs_table())
    callback = _STREAM(current)
    table.stream = ctypes.cast(callback, ctypes.c_void_p).value
    monkeypatch.setattr(native, "exchange", lambda: _capsule(table))
    monkeypatch.setattr(native, "_is_own_stream", lambda _: True)
    topk = Recorder("indices")
    for stream in (0, 7, 0, 7):
        topk.stream = stream
        topk.launched(plain_call(topk.table))
    assert topk.long_ways == 2 and topk.launches_from_python == 4
    assert set(asked) == {(2, -1)}


@pytest.mark.parametrize(("major", "used"), [(1, True), (2, False), (3, True)])
def test_a_table_of_another_version_is_refused_unless_an_older_one_is_behind(
    major: int, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _Exchange.from_buffer_copy(_torchs_table())
    table.major = major
    behind = _torchs_table()
    table.older = ctypes.addressof(behind) if major == 3 else None
    monkeypatch.setattr(native, "exchange", lambda: _capsule(table))
    topk = Recorder("indices")
    assert ("_again" in topk.call.__globals__) is used
    for _ in range(2):
        topk.launched(plain_call(topk.table))
    assert topk.long_ways == 1


def test_another_device_of_the_thread_is_another_call() -> None:
    devices = [1, 0]
    entry = LAUNCH(lambda *_: 0)
    table = Recorder("indices").table
    calls = native.make_calls(table, entry, True, False, lambda _: 5, devices.pop, lambda *_: None)
    assert calls is not None
    call = plain_call(table)
    tensors, numbers = [call.get(name) for name in table.memory], (None,) * len(table.numbers)
    twin = calls.make(tensors, numbers, 0, (5, ((1, 2),), bytes(table.size), None))
    assert twin is not None and not twin.used
    assert calls.again(*tensors, *numbers) is None
    calls.know((twin,))
    assert calls.again(*tensors, *numbers) is True and twin.used
    assert calls.again(*tensors, *numbers) is False
    assert calls.again(*tensors, *numbers) is None, "a device that cannot be told fits"


def test_an_interrupt_is_passed_on_and_an_error_left_to_the_text() -> None:
    topk = Recorder("indices")
    call = plain_call(topk.table)
    errors = [KeyboardInterrupt(), RuntimeError("no stream now")]

    def stream(_: int) -> int:
        raise errors[0]

    calls = native.make_calls(topk.table, LAUNCH(lambda *_: 0), True, True, stream, None, lambda *_: None)
    assert calls is not None
    tensors, numbers = [call.get(name) for name in topk.table.memory], (None,) * len(topk.table.numbers)
    spans = [0] * len(tensors) + [0, 0]
    twin = calls.make(tensors, numbers, -1, (0, (), bytes(topk.table.size), None, *spans, frozenset()))
    assert twin is not None
    calls.know((twin,))
    with pytest.raises(KeyboardInterrupt):
        calls.again(*tensors, *numbers)
    del errors[0]
    assert calls.again(*tensors, *numbers) is None


# ---- what it hands to the driver


@pytest.fixture(params=["libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6"])
def stub(
    request: pytest.FixtureRequest, build: stubs.Builder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[StubDriver]:
    """A recording driver of either vendor with the platform of its target; the last has the plain launch call only."""
    cuda = request.param == "libcuda.so.1"
    driver, compiler = build(request.param), build("libnvrtc.so.13" if cuda else "libhiprtc.so.7")
    stubs.place(monkeypatch, driver, compiler)
    made = stubs.open_stub(driver, "cuda" if cuda else "hip")
    made.set("params_bytes", 48)
    target, arch = ("sm_90", "sm_90a") if cuda else ("gfx942", "gfx942")
    synthetic.write_folder(tmp_path / "generated", target, api="cuda" if cuda else "hip", arch=arch)
    with use(HostPlatform(target)) as here:
        assert isinstance(here, HostPlatform)
        here.stream = 0x5150
        yield made


@pytest.mark.parametrize("width", [100, 1001])
@pytest.mark.parametrize("checked", [True, False])
def test_the_driver_gets_the_same_from_both_ways(stub: StubDriver, width: int, checked: bool) -> None:
    demo = dsv4gen.load("demo", checked=checked)
    native_too = [(torch.zeros(3, width), torch.zeros(3)) for _ in range(3)]
    for data, out in native_too:
        demo(data, out, scale=0.5)
    assert [memory.useful for memory in demo.raw.__globals__["_memories"].known] == [True]
    first, *others = stub.launches()
    for launch, (data, out) in zip((first, *others), native_too, strict=True):
        head = struct.pack("<QQ", data.data_ptr(), out.data_ptr())
        assert bytes(launch.params) == head + bytes(first.params)[16:]
        assert bytes(launch)[: stubs.Launch.params.offset] == bytes(first)[: stubs.Launch.params.offset]
        assert launch.stream == 0x5150


def test_clusters_and_dependent_launches_keep_their_attributes(cuda: StubDriver, generated: Path) -> None:
    assert generated.is_dir()
    with use(HostPlatform("sm_90")):
        demo = dsv4gen.load("demo")
        scratch = demo.run.make_workspaces("cpu", rows=4, width=8192)
        for _ in range(2):
            demo(torch.zeros(4, 8192), torch.zeros(4), scale=1.0, **scratch)
    launches = cuda.launches()
    assert len(launches) == 4
    for first, again in zip(launches[:2], launches[2:], strict=True):
        assert first.attributes == again.attributes and first.shared_bytes == again.shared_bytes
        assert bytes(first.params)[16:48] == bytes(again.params)[16:48]


def test_errors_of_the_driver_come_as_messages(stub: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    data, out = torch.zeros(2, 8), torch.zeros(2)
    demo(data, out, scale=1.0)
    stub.set("fail_launch", 700)
    for _ in range(3):
        with pytest.raises(DriverError, match=r"launching demo\.run: ILLEGAL_ADDRESS \(700\)"):
            demo(data, out, scale=1.0)
    stub.set("fail_launch", 0)
    demo(data, out, scale=1.0)
    assert stub.count("launches") == 2


def test_a_lost_context_is_found_again(cuda: StubDriver, generated: Path) -> None:
    assert generated.is_dir()
    with use(HostPlatform("sm_90")):
        demo = dsv4gen.load("demo")
        for status in (0, 201, 201):
            cuda.set("fail_launch", status)
            demo(torch.zeros(2, 8), torch.zeros(2), scale=1.0)
    assert cuda.count("launches") == 3
    assert [launch.context for launch in cuda.launches()][1:] == [0xC0, 0xC0]


def test_eight_threads_do_not_share_parameters(stub: StubDriver) -> None:
    demo = dsv4gen.load("demo")
    buffers = [torch.zeros(rows, 8) for rows in range(1, 9)]
    outs = [torch.zeros(rows) for rows in range(1, 9)]
    ready = threading.Barrier(8)

    def work(index: int) -> None:
        ready.wait()
        for _ in range(300):
            demo(buffers[index], outs[index], scale=float(index + 1))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    launches = stub.launches()
    assert len(launches) == 2400
    for launch in launches:
        data, out, _, _, rows, _, scale = struct.unpack_from("<QQQqIIf", bytes(launch.params))
        assert (buffers[rows - 1].data_ptr(), outs[rows - 1].data_ptr(), rows) == (data, out, scale)
        assert launch.grid[0] == rows


def test_the_lock_is_free_while_the_driver_waits() -> None:
    """A full queue blocks the launch, maybe until another thread has launched what its kernels wait for.

    The driver is `usleep` here, and the configuration the time that it takes.
    """
    table, usleep = Recorder("indices").table, ctypes.CDLL(None).usleep
    calls = native.make_calls(table, usleep, True, False, lambda _: 0, None, lambda *_: None)
    assert calls is not None
    call = plain_call(table)
    tensors, numbers = [call.get(name) for name in table.memory], (None,) * len(table.numbers)
    twin = calls.make(tensors, numbers, -1, (0, ((600_000, 2),), bytes(table.size), None))
    assert twin is not None
    calls.know((twin,))
    thread = threading.Thread(target=calls.again, args=(*tensors, *numbers))
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive() and not twin.used, "this thread had to wait for the driver"
    thread.join()
    assert twin.used


@pytest.mark.parametrize(("kind", "taken"), [("known", True), ("of another shape", False), ("foreign", None)])
def test_calls_leak_nothing(kind: str, taken: bool | None) -> None:
    topk = Recorder("page_table")
    call = plain_call(topk.table)
    topk.launched(call)
    first = {"known": call["scores"], "of another shape": torch.zeros(3, 700), "foreign": _Sub(3, 96)}[kind]
    words = [first, *[call.get(name) for name in (*topk.table.memory, *topk.table.numbers)][1:]]
    again = topk.call.__globals__["_again"]
    counts = [sys.getrefcount(value) for value in words if isinstance(value, torch.Tensor)]
    for calls in (2000, 20_000):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(calls):
            assert again(*words) is taken
            topk.params.clear()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024
    assert counts == [sys.getrefcount(value) for value in words if isinstance(value, torch.Tensor)]


def test_memories_come_and_go_without_a_trace() -> None:
    topk = Recorder("page_table")
    calls = native.make_calls(topk.table, LAUNCH(lambda *_: 0), True, False, lambda _: 0, None, lambda *_: None)
    assert calls is not None
    call = plain_call(topk.table)
    tensors, numbers = [call.get(name) for name in topk.table.memory], (1234.5,) * len(topk.table.numbers)
    plan = object()
    counts = sys.getrefcount(plan), [sys.getrefcount(value) for value in tensors], sys.getrefcount(numbers[0])
    for _ in range(3000):
        twin = calls.make(tensors, numbers, -1, (0, ((1, 2),), bytes(topk.table.size), plan))
        assert twin is not None
        calls.know((twin, twin))
        assert calls.make([*tensors[:-1], "no tensor"], numbers, -1, (0, (), bytes(topk.table.size), plan)) is None
        assert calls.make(tensors, numbers, -1, (0, ((1,),), bytes(topk.table.size), plan)) is None
        assert calls.make(tensors, numbers, -1, (0, (), b"short", plan)) is None
    del twin
    calls.know(())
    gc.collect()
    after = sys.getrefcount(plan), [sys.getrefcount(value) for value in tensors], sys.getrefcount(numbers[0])
    assert after == counts


def test_a_launch_function_goes_with_the_objects_that_it_holds() -> None:
    import weakref

    topk = Recorder("page_table")
    topk.launched(plain_call(topk.table))
    watched = weakref.ref(topk)
    del topk
    gc.collect()
    assert watched() is None


# ---- when it stands back


def _found(monkeypatch: pytest.MonkeyPatch, folder: Path) -> native.Found:
    source = folder / native.SOURCE.name
    if not source.exists():
        source.write_bytes(native.SOURCE.read_bytes())
    monkeypatch.setattr(native, "SOURCE", source)
    return native._find()


def test_why_it_is_not_used_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "was not built" in _found(monkeypatch, tmp_path).reason
    library = tmp_path / native.NAME
    library.write_bytes(b"no library")
    assert "does not load" in _found(monkeypatch, tmp_path).reason
    library.unlink()
    assert build_native.build(library, native.SOURCE) == ""
    assert _found(monkeypatch, tmp_path).reason == ""
    monkeypatch.setattr(native, "exchange", lambda: None)
    assert "no DLPack exchange table" in _found(monkeypatch, tmp_path).reason
    (tmp_path / "native_calls.c").write_text("// edited since", encoding="utf-8")
    assert "another native_calls.c" in _found(monkeypatch, tmp_path).reason
    monkeypatch.setenv("DSV4GEN_NATIVE", "0")
    assert _found(monkeypatch, tmp_path).reason == "DSV4GEN_NATIVE=0"


def test_why_it_cannot_be_built_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("#error as planned\n", encoding="utf-8")
    assert "as planned" in build_native.build(tmp_path / "out.so", broken)
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert build_native.build(tmp_path / "out.so") == f"no Python.h in {tmp_path}"
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    assert build_native.build(tmp_path / "out.so").startswith("no C compiler")
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".so") == []
