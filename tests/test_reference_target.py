"""`load(..., target="reference")` takes the calls of the families' own cases, and leaves what these expect."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import dsv4gen
from dsv4gen.base.errors import ArgumentError, LoadError

#: a launcher's own choices, which change no result
OWN = ("splits",)


@pytest.mark.parametrize("family", ["indexer_logits", "sparse_decode"])
def test_it_passes_every_case(family: str) -> None:
    cases = importlib.import_module(f"dsv4gen.reference.{family}_cases")
    ops = set()
    for case in cases.verification_cases(full=True):
        ops.add(case.op)
        loaded = dsv4gen.load(family, target="reference", **case.options)
        loaded.op(case.op)(**arguments(case))
        case.check()
    assert ops == set(dsv4gen.load(family, target="reference").ops)


def test_outputs_are_made_and_a_page_size_is_asked_for() -> None:
    case = next(iter(importlib.import_module("dsv4gen.reference.sparse_decode_cases").verification_cases(full=False)))
    attend = dsv4gen.load("sparse_decode", target="reference", **case.options).op("attend")
    given = {name: value for name, value in arguments(case).items() if name not in ("out", "lse", "queries")}
    out, lse = attend(**given, value_width=512)
    case.out.tensor.copy_(out)
    case.lse.tensor.copy_(lse)
    case.check()
    with pytest.raises(ArgumentError, match="page_size missing"):
        attend(**{name: value for name, value in given.items() if name != "page_size"}, value_width=512)


def test_a_family_without_a_reference_behind_a_call_says_so() -> None:
    with pytest.raises(
        LoadError, match=r"compress\.decode has no reference behind a call.*\n.*verify -t sm_90 -f compress"
    ):
        dsv4gen.load("compress", target="reference")()


def arguments(case: Any) -> dict[str, Any]:
    """A case's arguments without options, which `load` takes, and launchers' own choices."""
    return {name: value for name, value in case.arguments.items() if name not in (*case.options, *OWN)}
