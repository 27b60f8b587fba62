"""Positions, and everything YAML offers that a spec must not use."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4gen.spec.yaml_text import MAX_NODES, read_text


def errors_of(text: str | bytes) -> list[str]:
    """The mistakes in one file named f.yaml, without their remedies."""
    raw = text.encode() if isinstance(text, str) else text
    return [f"{error.place}: {error.message}" for error in read_text(raw, "f.yaml").errors]


def test_data_and_positions_of_keys_and_values() -> None:
    document = read_text(b"a: 1\nb:\n  - x\n  - {c: 'two'}\nd: {e: [true, ~]}\n", "f.yaml")
    assert document.data == {"a": 1, "b": ("x", {"c": "two"}), "d": {"e": (True, None)}}
    assert str(document.span(("a",)).value) == "f.yaml:1:4"
    assert str(document.span(("b",)).key) == "f.yaml:2:1"
    assert str(document.span(("b", 1, "c")).key) == "f.yaml:4:6"
    assert str(document.span(("b", 1, "c")).value) == "f.yaml:4:9"
    assert str(document.span(("d", "e", 0)).value) == "f.yaml:5:9"


def test_absent_path_falls_back_to_its_nearest_parent() -> None:
    document = read_text(b"a:\n  b: 1\n", "f.yaml")
    assert document.span(("a", "missing", 3)) == document.span(("a",))
    assert str(document.span(("missing",)).value) == "f.yaml:1:1"


def test_empty_value_is_placed_at_its_key() -> None:
    document = read_text(b"first: 1\na:\nb: 2\n", "f.yaml")
    assert str(document.span(("a",)).value) == "f.yaml:2:1"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_and_byte_order_mark_change_nothing(ending: str, mark: str) -> None:
    raw = (mark + ending.join(["a: 1", "b: {c: two}", ""])).encode()
    document = read_text(raw, "f.yaml")
    assert document.errors == []
    assert document.data == {"a": 1, "b": {"c": "two"}}
    assert str(document.span(("b", "c")).value) == "f.yaml:2:8"


REFUSED = [
    ("a: 1\na: 2\n", "f.yaml:2:1: the key 'a' is already set on line 1"),
    ("t:\n  a: {b: 1, b: 2}\n", "f.yaml:2:13: the key 'b' is already set on line 2"),
    ("yes: 1\ntrue: 3\n", "f.yaml:2:1: the key true is not text"),
    ("64: a\n", "f.yaml:1:1: the key 64 is not text"),
    ("9.0: a\n", "f.yaml:1:1: the key 9.0 is not text"),
    ("08: a\n", "f.yaml:1:1: the key 08 is not text"),
    (": a\n", "f.yaml:1:1: the key an empty key is not text"),
    ("[a]: 1\n", "f.yaml:1:1: a key must be plain text"),
    ("{a: 1}: 1\n", "f.yaml:1:1: a key must be plain text"),
    ("base: &b {x: 1}\nt: {<<: *b, x: 2}\n", "f.yaml:2:5: merge keys are not supported"),
    ("a: !!str 5\n", "f.yaml:1:4: the tag tag:yaml.org,2002:str is not allowed"),
    ("a: !!python/object:os.system {}\n", "f.yaml:1:4: the tag tag:yaml.org,2002:python/object:os.system"),
    ("a: !custom [1]\n", "f.yaml:1:4: the tag !custom is not allowed"),
    ("a: *nowhere\n", "f.yaml:1:4: the alias *nowhere has no anchor"),
    ("a: &x [1, *x]\n", "f.yaml:1:11: the alias *x contains itself"),
    ("a: 0512\n", "f.yaml:1:4: the number 0512 has a leading zero"),
    ("a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document in one file"),
    ("%YAML 1.1\n---\na: no\n", "f.yaml:2:1: only YAML 1.2 is read"),
    ("", "f.yaml:1:1: the file is empty"),
    ("# only a comment\n", "f.yaml:1:1: the file is empty"),
    ("---\n", "f.yaml:1:1: the file is empty"),
    ("a:\n\tb: 1\n", "f.yaml:2:1: a tab where YAML allows only spaces"),
    ("a: [1, 2\nb: 3\n", "f.yaml:2:2: not valid YAML"),
    ("a: 'open\n", "f.yaml:2:1: not valid YAML"),
    ("a: {b: 1\n", "f.yaml:2:1: not valid YAML"),
    ("a: b: c\n", "f.yaml:1:5: not valid YAML"),
    ("a: 1\nb: \x07\n", "f.yaml:2:4: a control character that YAML does not allow"),
    (b"a: caf\xe9\n", "f.yaml:1:7: not UTF-8 text: byte 0xe9"),
    (b"a: 1\nbc: \xff\n", "f.yaml:2:5: not UTF-8 text: byte 0xff"),
    ("a: 1\n".encode("utf-16"), "f.yaml:1:1: not UTF-8 text"),
    ("a: " + "[" * 60 + "]" * 60, "more than 40 levels of nesting"),
]


@pytest.mark.parametrize(("text", "expected"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_refused_at_its_place(text: str | bytes, expected: str) -> None:
    found = errors_of(text)
    assert len(found) == 1
    assert expected in found[0]


def test_quoted_keys_are_text() -> None:
    assert read_text(b"\"64\": a\n'true': b\n", "f.yaml").data == {"64": "a", "true": "b"}


def test_every_mistake_of_a_file_is_reported() -> None:
    text = "a: 1\na: !!int 2\n64: {b: 1, b: 2}\nc: {<<: {x: 007}}\n"
    places = [error.partition(": ")[0] for error in errors_of(text)]
    assert places == ["f.yaml:2:1", "f.yaml:2:4", "f.yaml:3:1", "f.yaml:3:12", "f.yaml:4:5", "f.yaml:4:13"]


def test_aliases_copy_data_and_point_at_their_anchor() -> None:
    document = read_text(b"a: &x {k: [1, 2]}\nb: *x\n", "f.yaml")
    assert document.data == {"a": {"k": (1, 2)}, "b": {"k": (1, 2)}}
    assert str(document.span(("b",)).value) == "f.yaml:2:4"
    assert str(document.span(("b", "k", 1)).value) == "f.yaml:1:15"


def test_alias_bombs_are_defused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    found = errors_of("\n".join(lines))
    assert len(found) == 1
    assert f"more than {MAX_NODES} values" in found[0]


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    document = read_text(raw, "f.yaml")
    assert document.errors or document.data is not None


@given(st.text(alphabet="ab:{}[]-&*!|>'\"#%@, \n\t?~<0.", max_size=60))
def test_any_punctuation_is_read_or_refused(text: str) -> None:
    document = read_text(text.encode(), "f.yaml")
    assert document.errors or document.data is not None


def as_read(data: object) -> object:
    """Lists become tuples, as in a document."""
    if isinstance(data, list):
        return tuple(as_read(item) for item in data)
    return {key: as_read(item) for key, item in data.items()} if isinstance(data, dict) else data


LEAVES = st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text(alphabet="abc xyz'\"\\#:", max_size=8)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("pqrs"), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abcd"), JSON, min_size=1))
def test_json_is_read_as_it_was_written(value: dict[str, object]) -> None:
    document = read_text(json.dumps(value).encode(), "f.yaml")
    assert document.errors == []
    assert document.data == as_read(value)
