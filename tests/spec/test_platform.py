"""Platform files: sources for every fact, inheritance, forms of a fact."""

# ruff: noqa: E501 - one mistake per line

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4gen.spec import load_specs
from dsv4gen.spec.facts import GROUPS
from dsv4gen.spec.leaves import group_leaves
from tests.spec.samples import CHILD, PARENT, damage, load_errors, write_specs


def test_bare_and_sourced_facts(tmp_path: Path) -> None:
    loaded = load_specs(write_specs(tmp_path)).platforms["gfx1"]
    leaves = group_leaves(loaded.model, loaded.document)
    mask, width = leaves["wave", "mask_bits"], leaves["wave", "shuffle_width"]
    assert (mask.value, mask.source, mask.mark, mask.place.line) == (64, "LAB", "read", 8)
    assert (width.value, width.source, width.mark, width.place.line) == (32, "LAB: guessed", "infer", 9)
    assert ("wave", "launch") not in leaves


CHILD_MISTAKES = [
    ("  source: LAB\n", "", "wave.mask_bits has no source"),
    ("  mark: read\n", "", "wave.mask_bits has no mark"),
    ("mark: infer", "mark: guess", "wave.shuffle_width.mark: expected one of 'ran', 'read' or 'infer'"),
    ("source: LAB\n", "source: LAP\n", "wave.mask_bits cites 'LAP', which 'sources' does not list (did you mean 'LAB'?)"),
    ("source: LAB\n", "source: \"LAB, LUB: both\"\n", "wave.mask_bits cites 'LUB'"),
    ("  mask_bits: 64", "  mask_bit: 64", "unknown key 'mask_bit' (did you mean 'mask_bits'?)"),
    ("  mask_bits: 64", "  mask_bits: sixty", "wave.mask_bits: expected an integer, got the text 'sixty'"),
    ("  mask_bits: 64", "  mask_bits: 0", "wave.mask_bits: input should be greater than 0"),
    ("{value: 32, source", "{valeu: 32, source", "wave.shuffle_width: expected an integer, got a mapping"),
    ("{value: 32, source", "{value: 32, sauce: x, source", "unknown key 'sauce' (did you mean 'source'?)"),
    ("wave:\n", "wav:\n", "unknown key 'wav' (did you mean 'wave'?)"),
    ("evidence: compiled", "evidence: compiled\nalso: {_base: {}}", "also: the file _base.yaml describes _base too"),
    ("evidence: compiled", "evidence: compiled\nfp8: {convert: [e4m3fn, e4m3fn]}", "fp8.convert: e4m3fn is listed twice"),
    ("extends: _base", "extends: _bass", "'extends' names '_bass', which is no platform file (did you mean '_base'?)"),
    ("extends: _base", "extends: gfx1", "'extends' goes in a circle: gfx1 -> gfx1"),
    ("target: gfx1", "target: gfx2", "target is 'gfx2' but the file is named 'gfx1.yaml'"),
    ("evidence: compiled", "evidence: none", "evidence: expected one of 'device', 'emulated' or 'compiled'"),
    ("evidence: compiled", "evidence: compiled\nproducts: {Card: {units: 3}}", "products.Card.units has no source"),
    ("evidence: compiled", "evidence: compiled\nalso: {gfx2: {wave: {launch: 32}}}", "wave.launch has no source"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHILD_MISTAKES, ids=[row[2] for row in CHILD_MISTAKES])
def test_mistake_in_a_target(tmp_path: Path, old: str, new: str, expected: str) -> None:
    errors = load_errors(write_specs(tmp_path, child=damage(CHILD, old, new)))
    matching = [error for error in errors if expected in error.message]
    assert matching, [str(error) for error in errors]
    place = matching[0].place
    assert place is not None and place.file.endswith("gfx1.yaml") and place.line is not None


def test_long_circles_are_shown_whole(tmp_path: Path) -> None:
    parent = damage(PARENT, "summary: Facts for tests.\n", "summary: Facts for tests.\nextends: gfx1\n")
    messages = [error.message for error in load_errors(write_specs(tmp_path, parent=parent))]
    assert "'extends' goes in a circle: _base -> gfx1 -> _base" in messages


def test_a_mistake_in_a_parent_is_reported_once(tmp_path: Path) -> None:
    errors = load_errors(write_specs(tmp_path, parent=damage(PARENT, "mark: ran", "mark: run")))
    assert [error.place.line for error in errors if error.place] == [5]


def test_every_group_is_documented() -> None:
    for name, group in GROUPS.items():
        assert group.__doc__ and not group.__doc__.startswith("A mapping of the file"), name
