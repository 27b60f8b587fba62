"""Templates ask for capabilities: none names a target, a product or a vendor, and no logic reads the target's name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.checkout import ROOT

TEMPLATES = sorted((ROOT / "templates").rglob("*.jinja"))
#: the dialects' own layers: their words are the vendors' language, and they are chosen by the target's API
LAYERS = re.compile(r"device/(hip|cuda)/")

_NAMES = re.compile(
    r"gfx\d|\bsm_?\d\d|compute_\d\d|\b(?:amd|nvidia|rocm|radeon|instinct|geforce|tesla|hopper|blackwell|ampere|lovelace)\b"
    r"|\b[cr]dna ?\d?\b|\bmi\d{3}|\b[hab][12]00\b|\brtx\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
#: what a decision must not read: the name, or the vendor behind it
_IDENTITY = re.compile(r"\btarget\.(?:name|api|arch|also)\b|\bfacts\.(?:detect|compile)\b|'(?:hip|cuda|simt)'")
_COMPARES = re.compile(r"\b(?:if|elif|in|is|set)\b|[=!]=|\[")


def named(text: str) -> list[str]:
    return _NAMES.findall(text)


def decisions_by_identity(text: str) -> list[str]:
    return [tag for tag in _TAG.findall(text) if _IDENTITY.search(tag) and _COMPARES.search(tag)]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "templates").as_posix()


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_no_template_names_a_target(path: Path) -> None:
    assert named(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_no_template_decides_by_who_the_target_is(path: Path) -> None:
    assert decisions_by_identity(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    ["{% if facts.wave.launch == 64 %}// gfx950{% endif %}", "// NVIDIA", "# CDNA3 only", "sm_90a", "an MI300X"],
)
def test_the_search_finds_names(text: str) -> None:
    assert named(text)


@pytest.mark.parametrize(
    "text",
    [
        "{% if target.name == 'x' %}",
        "{{ 1 if facts.detect.api == 'hip' else 2 }}",
        "{% set fast = target.name in names %}",
        "{{ table[target.name] }}",
        "{% if dialect == 'hip' %}",
    ],
)
def test_the_search_finds_decisions(text: str) -> None:
    assert decisions_by_identity(text)


def test_layers_are_the_only_place_for_vendor_words() -> None:
    words = re.compile(r"__builtin_amdgcn|__hip_|__nv|\basm\b|__shfl|__ballot|threadIdx|amdgpu")
    found = {name_of(path) for path in TEMPLATES if words.search(path.read_text(encoding="utf-8"))}
    assert found
    assert not {name for name in found if not LAYERS.match(name)}
