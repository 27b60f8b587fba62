"""Wrong calls: every mistake is named, and the launch function never accepts what the definition refuses."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsv4gen
from dsv4gen.base.argument_names import TEXT_READS
from dsv4gen.base.errors import ArgumentError, ManifestError
from dsv4gen.base.manifest import read_manifest
from dsv4gen.runtime import argument_text, arguments, specialise
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.driver_launch import DriverLaunch
from dsv4gen.runtime.read_table import make_table
from dsv4gen.runtime.triton_launch import TritonLaunch
from tests.checkout import ROOT
from tests.runtime import synthetic
from tests.runtime.stubs import StubDriver


def _wide(rows: int = 4, width: int = 8) -> torch.Tensor:
    return torch.zeros(rows, width)


_BUFFER = torch.zeros(32)
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "missing tensor": ({"data": None}, "data is missing"),
    "not a tensor": ({"data": [[1.0]]}, "data is a list, not a tensor"),
    "dimensions": ({"data": torch.zeros(4)}, r"data has 1 dimension\(s\); \[.*rows.*\] is needed"),
    "dtype": ({"data": _wide().double()}, "data is float64; float32 is needed"),
    "sizes disagree": ({"out": torch.zeros(5)}, r"out has size 5 in dimension 0; .*rows.* is 4 \(from data\)"),
    "inner stride": ({"data": torch.zeros(4, 16)[:, ::2]}, "data has stride 2 in dimension 1; 1 is needed"),
    "output stride": ({"out": torch.zeros(8)[::2]}, "out has stride 2"),
    "expanded output": ({"out": torch.zeros(1).expand(4)}, "out overlaps itself"),
    "alignment": ({"data": torch.zeros(130, dtype=torch.uint8)[2:130].view(4, 32).view(torch.int8)}, "int8"),
    "too large": ({"data": torch.zeros(1, 65537), "out": torch.zeros(1)}, "width=65537 is outside 0..65536"),
    "scalar": ({"scale": None}, "scale is missing"),
    "scalar text": ({"scale": "1"}, "scale is '1', not a number"),
    "scalar out of range": ({"scale": 10**400}, "not a number"),
    "freed workspace": ({"scratch": "freed"}, "scratch has no memory"),
    "meta tensor": ({"data": torch.zeros(4, 8, device="meta")}, "data has no memory"),
    "output in an input": (
        {"data": _BUFFER.view(4, 8), "out": _BUFFER[4:8]},
        "out shares memory with data; what a kernel",
    ),
    "output over two rows": ({"data": _BUFFER.view(4, 8)[:, :4], "out": _BUFFER[3:7]}, "out shares memory with data"),
    "workspace over an output": (
        {"out": _BUFFER[4:8], "scratch": _BUFFER[4:].view(torch.uint8)},
        "^demo.run: scratch shares memory with out;",
    ),
    "sparse": ({"data": torch.zeros(4, 8).to_sparse()}, "data has layout torch.sparse_coo"),
}


@pytest.mark.usefixtures("host")
@pytest.mark.usefixtures("generated")
@pytest.mark.parametrize("name", WRONG)
def test_each_mistake_is_named(name: str, cuda: StubDriver) -> None:
    changes, message = WRONG[name]
    call = {"data": _wide(), "out": torch.zeros(4), "scale": 1.0, **changes}
    if changes.get("scratch") == "freed":
        call["scratch"] = torch.zeros(4096, dtype=torch.uint8)
        call["scratch"].untyped_storage().resize_(0)
    with pytest.raises(ArgumentError, match=message):
        dsv4gen.load("demo")(**call)
    assert cuda.count("launches") == 0


@pytest.mark.usefixtures("cuda", "host")
@pytest.mark.usefixtures("generated")
def test_several_mistakes_are_named_at_once() -> None:
    with pytest.raises(ArgumentError) as caught:
        dsv4gen.load("demo")(_wide().double(), torch.zeros(4, dtype=torch.int32), scale=None)
    assert all(text in str(caught.value) for text in ("data is float64", "out is int32", "scale is missing"))


@pytest.mark.usefixtures("cuda", "host")
@pytest.mark.usefixtures("generated")
@pytest.mark.parametrize("data", [_wide().double(), torch.zeros(4), [[1.0]]])
def test_what_follows_from_a_mistake_is_not_named_as_another(data: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        dsv4gen.load("demo")(data=data, out=torch.zeros(4), scale=1.0)
    said = caught.value.message.replace("[rows, width]", "")
    assert said.startswith("demo.run: data ")
    assert not {"out", "rows", "width"} & set(re.split(r"\W+", said))


@pytest.mark.usefixtures("cuda", "host")
@pytest.mark.usefixtures("generated")
def test_names_that_do_not_fit() -> None:
    demo = dsv4gen.load("demo")
    with pytest.raises(ArgumentError, match=r"no argument 'scal' \(did you mean 'scale'"):
        demo(_wide(), scal=1.0)
    with pytest.raises(ArgumentError, match="scale missing"):
        demo(_wide())
    with pytest.raises(ArgumentError, match="given data twice"):
        demo(_wide(), data=_wide(), scale=1.0)
    with pytest.raises(ArgumentError, match="given 4 tensors"):
        demo(_wide(), _wide(), _wide(), _wide(), scale=1.0)


def _table(shape: list[Any], strides: list[Any], role: str, align: int) -> CallTable:
    family = synthetic.demo_family()
    family["ops"]["run"]["tensors"] = [
        synthetic.tensor("data", "f32", ["rows", "width"], ["stride", 1], "in"),
        synthetic.tensor("other", "i32", shape, strides, role, align=align),
    ]
    return make_table("demo", family, "run", {"mode": "plain"})


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"scale"', '"min"', "'min' cannot be the name of an argument: it is a name that launch functions read"),
        ('"scratch"', '"bytes"', "'bytes' cannot be the name of an argument"),
        ('"out"', '"_out"', "'_out' cannot be the name of an argument: it begins with an underscore"),
        ('"width"', '"in"', "'in' cannot be the name of an argument: it is no name in Python"),
        ('"run": {', '"repr": {', "'repr' cannot be the name of an op"),
        ('"out"', '"data"', "data names two things"),
    ],
)
def test_names_that_a_launch_function_cannot_have(old: str, new: str, says: str) -> None:
    family = json.loads(json.dumps(synthetic.demo_family()).replace(old, new))
    with pytest.raises(ManifestError, match=re.escape(says)):
        make_table("demo", family, *family["ops"], {"mode": "plain"})


@pytest.mark.parametrize("target", ["sm_90", "gfx950"])
def test_every_name_that_launch_functions_read_is_refused(target: str) -> None:
    """Their text is read: what it neither binds nor marks by an underscore must be in the list, and no more."""
    read: set[str] = set()
    for family, entry in read_manifest(ROOT / "generated" / target).families.items():
        options = {name: option["default"] for name, option in entry["options"].items()}
        for op in entry["ops"]:
            table = make_table(family, entry, op, options)
            for ending in [TritonLaunch(table, amd=True)] if table.launcher else [DriverLaunch(table)]:
                read |= _free_names("\n".join(_every_line(table, ending)))
    assert read == TEXT_READS - {"max", "min"}, "and these two in sizes of tensors"
    assert {"max", "min"} == _free_names(argument_text.expression_text(["min", 1, ["max", 2, 3]]))


def _every_line(table: CallTable, ending: specialise.Ending) -> Iterator[str]:
    return specialise.function_text(table, ending, checked=True, on_cuda=True, many_devices=True)


def _free_names(text: str) -> set[str]:
    """Names without an underscore that a text reads and neither binds nor takes as parameters."""
    nodes = list(ast.walk(ast.parse(text)))
    bound = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return {node.id for node in names if not node.id.startswith("_")} - bound


TABLES = (
    _table(["rows", "width"], ["stride", "second"], "in", 4),
    _table(["rows"], [1], "out", 16),
    _table(["rows", ["ceil_div", "width", 2]], ["first", "second"], "out", 8),
    _table([["*", "rows", 2], "width"], ["first", 1], "out", 4),
)


@st.composite
def _tensors(draw: st.DrawFn, dimensions: int) -> torch.Tensor:
    """Views with odd offsets, strides and sizes, mostly of the right dtype."""
    dtype = draw(st.sampled_from([torch.int32, torch.int32, torch.int32, torch.float32]))
    sizes = [draw(st.integers(0, 4)) for _ in range(dimensions)]
    strides = [draw(st.sampled_from([0, 1, 1, 2, 3, 4, 8])) for _ in range(dimensions)]
    offset = draw(st.sampled_from([0, 0, 1, 2, 4]))
    return torch.zeros(256, dtype=dtype).as_strided(sizes, strides, offset)


def _accepts(table: CallTable, values: dict[str, Any]) -> bool:
    """Whether the launch function's own tests pass, without asking the definition."""

    class Asked(Exception):
        pass

    def recheck(**_: Any) -> None:
        raise Asked

    class Done(Exception):
        pass

    def stream(_: int) -> int:
        raise Done

    names = {"_recheck": recheck, "_stream": stream}
    function = specialise.make_function(
        table, DriverLaunch(table), checked=True, on_cuda=False, many_devices=False, names=names
    )
    try:
        function(**values)
    except Done:
        return True
    except Asked:
        return False
    raise AssertionError("the launch function ended early")


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_launch_function_accepts_nothing_the_definition_refuses(data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(TABLES))
    rule = next(rule for rule in table.tensors if rule.name == "other")
    rows, width = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    other = data.draw(_tensors(len(rule.shape)))
    shared = other.view(torch.float32).as_strided((rows, width), (8, 1), data.draw(st.integers(0, 8)))
    values: dict[str, Any] = {
        "data": shared if data.draw(st.booleans()) else torch.zeros(rows, width),
        "other": other,
        **dict.fromkeys(table.required_numbers, 1),
    }
    try:
        arguments.check(table, values, on_cuda=False)
        right = True
    except ArgumentError:
        right = False
    fast = _accepts(table, values)
    assert not fast or right
    empty = any(values[name].numel() == 0 for name in ("data", "other"))
    strides = values["other"].stride()
    permuted = list(strides) != sorted(strides, reverse=True)
    one_buffer = values["data"].untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    assert fast == right or empty or permuted or one_buffer, "a right call of the ordinary kind takes the slow road"
