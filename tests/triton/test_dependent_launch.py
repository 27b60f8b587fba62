"""Programmatic dependent launch of Triton kernels: every program waits before it touches global memory (B13)."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import pytest

from dsv4gen.render.render import render_triton
from dsv4gen.toolchain import compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.compress import modules as compress
from tests.sparse_decode import modules as sparse
from tests.tools import need_module
from tests.triton import modules as gather
from tests.triton.compiled import record

FAMILIES = {"gather_dequant": gather, "compress": compress}
#: one target with the capability, three without
WITH, WITHOUT = "sm_90", ("sm_89", "gfx950", "gfx1201")
_ACCESS = re.compile(r"\b(?:ld|st|atom|red)\.(?:\w+\.)*?global\b|\bcp\.async\b")
_WAIT = re.compile(r"\bgriddepcontrol\.wait\b")
_RELEASE = re.compile(r"\bgriddepcontrol\.launch_dependents\b")


@lru_cache
def assemblies(family: str, *mutations: str) -> Mapping[str, str]:
    """PTX of what the module compiles ahead of time, one kernel of a kind."""
    need_module("triton")
    made = FAMILIES[family]
    chosen = made.plan(WITH)
    text = render_triton(chosen, frozenset(mutations))
    kernels = {k.function: k for k in triton_requests(chosen, text, made.module(WITH, *mutations))}
    found = {}
    compiled = compile_triton_many([(kernel, record(WITH)) for kernel in kernels.values()], jobs=1)
    for name, finished in zip(kernels, compiled, strict=True):
        assert finished.value is not None, finished.error
        found[name] = finished.value.code.assembly or ""
    return found


def waits_first(assembly: str) -> bool:
    """Whether every program waits, and before it touches global memory: no access and no exit in front of the wait."""
    body = assembly[assembly.index(".entry") :]
    wait, access = _WAIT.search(body), _ACCESS.search(body)
    assert access is not None
    if wait is None or wait.start() > access.start():
        return False
    return re.search(r"^\s*(?:@\S+\s+)?(?:bra|ret)\b", body[: wait.start()], re.MULTILINE) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_every_kernel_waits_first(family: str) -> None:
    """But for the half that runs behind pooling: it reads what pooling does not write, and waits for what it does."""
    found = assemblies(family)
    assert set(found) == {kernel.entry for kernel in FAMILIES[family].plan(WITH).kernels}
    early = {name for name, assembly in found.items() if not waits_first(assembly)}
    assert early == ({"finish_row"} if family == "compress" else set())


def test_the_half_behind_pooling_waits_before_it_reads_pooled_rows() -> None:
    body = assemblies("compress")["finish_row"]
    body = body[body.index(".entry") :]
    wait = _WAIT.search(body)
    assert wait is not None and not re.search(r"\bst\.(?:\w+\.)*?global\b", body[: wait.start()])
    pooled = re.search(r"ld\.param\.b64\s+(%rd\d+), \[finish_row_param_0\]", body)
    assert pooled is not None
    loads = _loads_from(body, pooled[1])
    assert loads and min(loads) > wait.start()


def promised(function: str, **constants: int) -> tuple[str, Mapping[str, str]]:
    """PTX of a compress kernel under promises, and the registers that hold its pointer parameters."""
    need_module("triton")
    chosen = compress.plan(WITH)
    requests = triton_requests(chosen, render_triton(chosen), compress.module(WITH))
    kernel = next(request for request in requests if request.function == function)
    assert constants.keys() <= kernel.constexprs.keys()
    kernel = replace(kernel, constexprs={**kernel.constexprs, **constants})
    (finished,) = compile_triton_many([(kernel, record(WITH))], jobs=1)
    assert finished.value is not None, finished.error
    assembly = finished.value.code.assembly or ""
    body = assembly[assembly.index(".entry") :]
    found = {}
    for position, (name, kind) in enumerate(kernel.signature.items()):
        register = re.search(rf"ld\.param\.b64\s+(%rd\d+), \[{function}_param_{position}\]", body)
        if kind.startswith("*") and register is not None:
            found[name] = register[1]
    return body, found


@pytest.mark.parametrize(
    ("function", "constants", "ready"),
    [
        ("decode_row", {"PLAN_READY": True}, {"plan", "out_loc"}),
        ("decode_part", {"PLAN_READY": True}, {"plan"}),
        ("decode_part", {"PLAN_READY": True, "DIMS": 64, "ROWS": 8, "SHARE": 4}, {"plan"}),
        ("prefill_row", {"PLAN_READY": True}, {"plan"}),
        ("prefill_part", {"PLAN_READY": True}, {"plan"}),
        ("write_row", {"AFTER_PREFILL": True}, {"plan", "source"}),
    ],
)
def test_what_a_promise_moves_in_front_of_the_wait(function: str, constants: dict[str, int], ready: set[str]) -> None:
    """Reads of what the promise names, and nothing else: no other read, no write, and no way past the wait."""
    body, pointers = promised(function, **constants)
    wait = _WAIT.search(body)
    assert wait is not None and not re.search(r"\b(?:st|atom|red)\.(?:\w+\.)*?global\b", body[: wait.start()])
    assert re.search(r"^\s*(?:@\S+\s+)?(?:bra|ret)\b", body[: wait.start()], re.MULTILINE) is None
    first = {name: min(_loads_from(body, pointer), default=len(body)) for name, pointer in pointers.items()}
    assert {name for name, place in first.items() if place < wait.start()} == ready


def test_where_the_launch_after_is_released() -> None:
    """Before the wait only behind pooling and prefill, which waited; else behind it."""
    found = {name: body[body.index(".entry") :] for name, body in assemblies("compress").items()}
    found["write_row"], _ = promised("write_row", AFTER_PREFILL=True)
    at_once = {name for name, body in found.items() if _RELEASE.search(body).start() < _WAIT.search(body).start()}  # type: ignore[union-attr]
    assert at_once == {"finish_row", "write_row"}


@pytest.mark.parametrize("function", ["decode_part", "prefill_part"])
def test_held_loads_stand_in_front_of_what_uses_them(function: str) -> None:
    """All loads of a tile, three a step of the unrolled loop, then the release, then the first weight."""
    tile = {"DIMS": 32, "ROWS": 16, "UNROLL": 8}
    body, _ = promised(function, HOLD=True, **tile)
    held = [release.start() for release in _RELEASE.finditer(body)][-1]
    tile_loads = [load.start() for load in _ACCESS.finditer(body[:held])][-3 * tile["UNROLL"] :]
    assert not re.search(r"\bex2\.|\bst\.\S*global", body[tile_loads[0] : held])
    assert not re.search(r"\bld\.\S*global", body[held : held + body[held:].index("ex2.")])
    plain, _ = promised(function, HOLD=False, **tile)
    assert len(_RELEASE.findall(plain)) == 1


def _loads_from(body: str, pointer: str) -> list[int]:
    """Positions of global loads whose address is computed from a register, however many steps later."""
    tainted = {pointer}
    found = []
    for line in re.finditer(r"^[^\n]*;[^\n]*$", body, re.MULTILINE):
        registers = re.findall(r"%[a-z]+\d+", line.group())
        if "global" in line.group() and tainted & set(registers):
            found.append(line.start())
        elif registers and tainted & set(registers[1:]):
            tainted.add(registers[0])
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_a_missing_wait_is_seen(family: str) -> None:
    assert not any(waits_first(assembly) for assembly in assemblies(family, "no_wait").values())


@pytest.mark.parametrize("family", FAMILIES)
def test_every_launch_asks_for_it_and_offline_builds_too(family: str) -> None:
    made = FAMILIES[family]
    text = made.module(WITH).read_text(encoding="utf-8")
    launches = re.findall(r"enable_fp_fusion(?:=|\": )FP_FUSION.*|num_warps=4, num_stages=1.*", text)
    assert launches
    assert all("launch_pdl" in launch for launch in launches)
    chosen = made.plan(WITH)
    requests = triton_requests(chosen, render_triton(chosen), made.module(WITH))
    assert all(request.options["launch_pdl"] is True for request in requests)


def sparse_requests(*mutations: str) -> dict[str, str]:
    """PTX of one tile of sparse_decode for each way to merge, by way."""
    need_module("triton")
    chosen, path = sparse.plan(WITH), sparse.module(WITH, *mutations)
    made = triton_requests(chosen, render_triton(chosen, frozenset(mutations)), path)
    small = [k for k in made if k.function == "attend_scopes" and k.constexprs["BLOCK_H"] == 16]
    kernels = {str(k.constexprs["REDUCE"]): k for k in small}
    assert {way: bool(k.options.get("launch_pdl")) for way, k in kernels.items()} == {
        "none": True,
        "kernel": False,
        "last_arriver": False,
    }
    compiled = compile_triton_many([(kernel, record(WITH)) for kernel in kernels.values()], jobs=1)
    return {way: done.value.code.assembly or "" for way, done in zip(kernels, compiled, strict=True) if done.value}


def test_attention_in_one_launch_waits_first_and_parts_do_not_overlap() -> None:
    """Parts start after the launch before: waiting programs of their merge took room from the next call's (H200)."""
    found = sparse_requests()
    assert {way: waits_first(assembly) for way, assembly in found.items()} == {
        "none": True,
        "kernel": False,
        "last_arriver": False,
    }
    assert not waits_first(sparse_requests("no_wait")["none"])
    text = sparse.module(WITH).read_text(encoding="utf-8")
    assert text.count("launch_pdl") == text.count('launch_pdl=how == "none"') + text.count('"launch_pdl": True')


@pytest.mark.parametrize("target", WITHOUT)
def test_attention_of_other_targets_holds_no_trace_of_it(target: str) -> None:
    assert not re.search(r"gdc_|pdl|DEPENDENT|await_launch", render_triton(sparse.plan(target)).text)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", WITHOUT)
def test_other_targets_hold_no_trace_of_it(family: str, target: str) -> None:
    text = render_triton(FAMILIES[family].plan(target)).text
    assert not re.search(r"gdc_|pdl|DEPENDENT|await_launch|AFTER_P|PLAN_READY|HOLD|release_launch", text)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target", WITHOUT)
def test_launch_functions_take_the_same_keywords_everywhere(family: str, target: str) -> None:
    """torch registers one schema for an op, that of whichever target is loaded first."""
    assert launch_functions(family, target) == launch_functions(family, WITH)


def launch_functions(family: str, target: str) -> dict[str, str]:
    """Parameters with their defaults, by function, of what a module offers to callers."""
    nodes = ast.parse(render_triton(FAMILIES[family].plan(target)).text).body
    found = [node for node in nodes if isinstance(node, ast.FunctionDef) and not node.decorator_list]
    return {node.name: ast.unparse(node.args) for node in found}
