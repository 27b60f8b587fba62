"""Calls of top-k as a user makes them, and generated folders with planted mistakes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from dsv4gen.base.manifest import FILE_NAME, digest_bytes, read_manifest
from dsv4gen.reference.topk_cases import Call, Case, build_problem

TARGETS = ("gfx942", "gfx950", "gfx1201")


def topk_call(length: int = 700, k: int = 64, mode: str = "page_table", **factors: object) -> Call:
    """One call on two rows, with poison around everything the kernel may touch; `factors` are those of `Case`."""
    factors = {"page_bits": 4, **factors}
    case = Case("select", "normal", length, k, mode, **factors)  # type: ignore[arg-type]
    return Call(case, build_problem(case))


def plant(built: Path, copy: Path, target: str, right: str, wrong: str) -> None:
    """Copy one target's folder and replace a text, which must be there once, as if it had been generated so."""
    shutil.copytree(built / target, copy / target)
    source = copy / target / "topk.hip"
    text = source.read_text(encoding="utf-8")
    assert text.count(right) == 1, f"{text.count(right)} times: {right}"
    source.write_text(text.replace(right, wrong), encoding="utf-8")
    data = dict(read_manifest(copy / target).data)
    data["outputs"] = {**data["outputs"], "topk.hip": digest_bytes(source.read_bytes())}
    (copy / target / FILE_NAME).write_text(json.dumps(data), encoding="utf-8")
