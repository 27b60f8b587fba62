"""Each kind of schema mistake: its place, its words, its way out (BL-37, BL-38)."""

# ruff: noqa: E501 - one mistake per line

from __future__ import annotations

from typing import Literal

import pytest

from dsv4gen.spec.check import validate
from dsv4gen.spec.document import Document
from dsv4gen.spec.models import Expression, Model, Natural, Table
from dsv4gen.spec.yaml_text import read_text


class Inner(Model):
    has_cluster: bool = False
    banks: Natural = 0


class Sample(Model):
    arch: str = "x"
    wave: int = 64
    flag: bool = False
    ratio: float = 1.0
    kind: Literal["hip", "cuda"] = "hip"
    either: int | str = 1
    names: tuple[str, ...] = ()
    when: Expression = "true"
    inner: Inner = Inner()
    table: Table[Inner] = Table({})
    optional: int | None = None


def check(text: str) -> tuple[Sample | None, list[str]]:
    document: Document = read_text(text.encode(), "f.yaml")
    model = validate(document, Sample)
    return model, [str(error).replace("\n  remedy: ", " >> ") for error in document.errors]


MISTAKES = [
    ("arch: true", "f.yaml:1:7: arch: expected text, got the boolean true >> quote it to keep it as text"),
    ("arch: 9.0", "f.yaml:1:7: arch: expected text, got the number 9.0 >> quote it to keep it as text"),
    ("arch: 7.10", "f.yaml:1:7: arch: expected text, got the number 7.10 >> quote it to keep it as text"),
    ("arch: 90", "f.yaml:1:7: arch: expected text, got the integer 90 >> quote it to keep it as text"),
    ("arch:", "f.yaml:1:1: arch: expected text, got nothing"),
    ("flag: on", "f.yaml:1:7: flag: expected true or false, got the text 'on' >> write true or false; YAML 1.2 reads on as text"),
    ("flag: 1", "f.yaml:1:7: flag: expected true or false, got the integer 1"),
    ("wave: '64'", "f.yaml:1:7: wave: expected an integer, got the text '64' >> write the number without quotes or separators"),
    ("wave: 1_28", "f.yaml:1:7: wave: expected an integer, got the text '1_28' >> write the number without quotes or separators"),
    ("wave: 64.0", "f.yaml:1:7: wave: expected an integer, got the number 64.0 >> write 64"),
    ("wave: 6.5", "f.yaml:1:7: wave: expected an integer, got the number 6.5"),
    ("wave: true", "f.yaml:1:7: wave: expected an integer, got the boolean true"),
    ("wave: [64]", "f.yaml:1:7: wave: expected an integer, got a list"),
    ("wave: 0512", "f.yaml:1:7: the number 0512 has a leading zero, which some readers take for octal >> quote it, or write the number without leading zeros"),
    ("ratio: .nan", "f.yaml:1:8: ratio: input should be a finite number, got the number .nan"),
    ("ratio: -.inf", "f.yaml:1:8: ratio: input should be a finite number, got the number -.inf"),
    ("ratio: 1e999", "f.yaml:1:8: ratio: input should be a finite number, got the number 1e999"),
    ("ratio: -inf", "f.yaml:1:8: ratio: expected a number, got the text '-inf' >> write the number without quotes or separators"),
    ("ratio: true", "f.yaml:1:8: ratio: expected a number, got the boolean true"),
    ("ratio: 1:4", "f.yaml:1:8: ratio: expected a number, got the text '1:4' >> write the number without quotes or separators"),
    ("kind: rocm", "f.yaml:1:7: kind: expected one of 'hip' or 'cuda', got the text 'rocm'"),
    ("either: true", "f.yaml:1:9: either: expected an integer or text, got the boolean true"),
    ("names: a", "f.yaml:1:8: names: expected a list, got the text 'a'"),
    ("names: [a, b: c]", "f.yaml:1:12: names[1]: expected text, got a mapping"),
    ("names: [gfx942, 1e5, off]", "f.yaml:1:17: names[1]: expected text, got the number 1e5 >> quote it to keep it as text"),
    ("when: 1.5", "f.yaml:1:7: when: expected text, got the number 1.5 >> quote it to keep it as text"),
    ("inner: {has_clustr: true}", "f.yaml:1:9: unknown key 'has_clustr' (did you mean 'has_cluster'?) >> known keys here: has_cluster, banks"),
    ("table: {a: {bank: 1}}", "f.yaml:1:13: unknown key 'bank' (did you mean 'banks'?) >> known keys here: has_cluster, banks"),
    ("table: [a]", "f.yaml:1:8: table: expected a mapping, got a list"),
    ("inner: {banks: -1}", "f.yaml:1:16: inner.banks: input should be greater than or equal to 0, got the integer -1"),
    ("tile: {BLOCK_T: 64}", "f.yaml:1:1: unknown key 'tile'"),
    ("- a", "f.yaml:1:1: expected a mapping, got a list"),
    ("just text", "f.yaml:1:1: expected a mapping, got the text 'just text'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MISTAKES, ids=[text for text, _ in MISTAKES])
def test_mistake(text: str, expected: str) -> None:
    model, errors = check(text)
    assert model is None
    assert len(errors) == 1
    assert errors[0].startswith(expected)


def test_missing_key_names_its_parent() -> None:
    class Outer(Model):
        table: Table[Strict]

    document = read_text(b"table:\n  one: {a: 1}\n  two: {}\n", "f.yaml")
    assert validate(document, Outer) is None
    assert [str(error) for error in document.errors] == ["f.yaml:3:3: missing key 'a' in 'table.two'"]


class Strict(Model):
    a: int


def test_all_mistakes_of_yaml_and_schema_together() -> None:
    _, errors = check("arch: 1\nwave: 007\nwav: 2\ninner:\n  banks: x\n  banks: 3\n")
    assert [error.split(" ")[0] for error in errors] == [
        "f.yaml:2:7:",
        "f.yaml:6:3:",
        "f.yaml:1:7:",
        "f.yaml:5:10:",
        "f.yaml:3:1:",
    ]


def test_sound_values_keep_their_types() -> None:
    model, errors = check("ratio: 2\nwhen: 12\noptional: null\neither: x\ninner: {has_cluster: true}\n")
    assert errors == []
    assert model is not None
    assert (model.ratio, model.when, model.optional, model.either) == (2.0, "12", None, "x")
    assert check("when: false\n")[0] == Sample(when="false")


def test_models_cannot_be_changed() -> None:
    model, _ = check("table: {b: {}, a: {}}")
    assert model is not None
    with pytest.raises(ValueError, match="frozen"):
        model.wave = 3
    with pytest.raises(TypeError):
        model.table["c"] = Inner()  # type: ignore[index]
    assert list(model.table) == ["a", "b"]
    assert hash(model) == hash(check("table: {a: {}, b: {}}")[0])
