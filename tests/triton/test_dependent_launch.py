"""Programmatic dependent launch of Triton kernels: every program waits before it touches global memory (B13)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import pytest

from dsv4gen.render.render import render_triton
from dsv4gen.toolchain import compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.tools import need_module
from tests.triton.compiled import record
from tests.triton.modules import module, plan, rendered

#: one target with the capability, three without
WITH, WITHOUT = "sm_90", ("sm_89", "gfx950", "gfx1201")
_ACCESS = re.compile(r"\b(?:ld|st|atom|red)\.(?:\w+\.)*?global\b|\bcp\.async\b")
_WAIT = re.compile(r"\bgriddepcontrol\.wait\b")


@lru_cache(maxsize=2)
def assemblies(*mutations: str) -> Mapping[str, str]:
    """PTX of what the module compiles ahead of time, one kernel of a kind."""
    need_module("triton")
    text = rendered(WITH, *mutations)
    kernels = {kernel.function: kernel for kernel in triton_requests(plan(WITH), text, module(WITH, *mutations))}
    work = [(replace(kernel), record(WITH)) for kernel in kernels.values()]
    found = {}
    for name, finished in zip(kernels, compile_triton_many(work, jobs=1), strict=True):
        assert finished.value is not None, finished.error
        found[name] = finished.value.code.assembly or ""
    return found


def waits_first(assembly: str) -> bool:
    """Whether the wait stands in the entry block, in front of every access to global memory."""
    body = assembly[assembly.index(".entry") :]
    wait, access = _WAIT.search(body), _ACCESS.search(body)
    assert access is not None
    if wait is None or wait.start() > access.start():
        return False
    return re.search(r"^\s*(?:@\S+\s+)?(?:bra|ret)\b", body[: wait.start()], re.MULTILINE) is None


def test_every_kernel_waits_first() -> None:
    found = assemblies()
    assert set(found) == {"gather_scope", "gather_scopes"}
    assert {name for name, assembly in found.items() if not waits_first(assembly)} == set()


def test_a_missing_wait_is_seen() -> None:
    assert not any(waits_first(assembly) for assembly in assemblies("no_wait").values())


def test_every_launch_asks_for_it_and_offline_builds_too() -> None:
    text = module(WITH).read_text(encoding="utf-8")
    launches = re.findall(r"enable_fp_fusion=FP_FUSION.*", text)
    assert launches
    assert all("launch_pdl=True" in launch for launch in launches)
    requests = triton_requests(plan(WITH), rendered(WITH), module(WITH))
    assert all(request.options["launch_pdl"] is True for request in requests)


@pytest.mark.parametrize("target", WITHOUT)
def test_other_targets_hold_no_trace_of_it(target: str) -> None:
    assert not re.search(r"gdc_|pdl|DEPENDENT|await_launch", render_triton(plan(target)).text)
