"""A journal's choices as `specs/tuning/<target>/<family>.yaml`; comments that were there stay.

The file's own order of kernels and its comments are kept. A kernel that was measured gets its rows anew; a comment at
the end of a row survives where a row with the same predicate does.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from dsv4gen.base.errors import Place, SpecError
from dsv4gen.base.outputs import write_whole
from dsv4gen.tune.choose import Choice
from dsv4gen.tune.journal import Head

HEADER = """\
Tiles of {family} on {target}: rows per kernel, the first that holds counts. Written by `dsv4gen tune`, for review.
Only predicate and tile enter the plan; a row without a time repeats the family's spec."""
_WIDTH = 4096
_VALUE = {"time": "microseconds", "emulated": "instructions"}


def write_tuning(path: Path, head: Head, policy: str, choices: Mapping[str, Sequence[Choice]]) -> str:
    """Write or update a file and return its text.

    Args:
        choices: rows by kernel, none where the spec's tiles stay; the file's other kernels stay as they are.

    Raises:
        SpecError: the file that is there is no YAML.
        OutputError: it cannot be written.
    """
    text = tuned_text(_read(path), head, policy, choices)
    write_whole(path, text.encode())
    return text


def tuned_text(old: str, head: Head, policy: str, choices: Mapping[str, Sequence[Choice]]) -> str:
    """The file's new text, from the old one, or from nothing."""
    yaml = _yaml()
    data = yaml.load(old) if old.strip() else _fresh(head)
    data["measured"] = _measured(head, policy, data.get("measured"))
    for kernel, rows in choices.items():
        if not rows:
            data["kernels"].pop(kernel, None)
            continue
        data["kernels"][kernel] = _rows(rows, head, data["kernels"].get(kernel))
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
        _yaml().load(text)
    except FileNotFoundError:
        return ""
    except (OSError, YAMLError) as error:
        raise SpecError(f"cannot be read: {error}", place=Place(str(path)), remedy="repair or remove it") from error
    return text


def _yaml() -> YAML:
    yaml = YAML()
    yaml.width = _WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.preserve_quotes = True
    return yaml


def _fresh(head: Head) -> CommentedMap:
    data = CommentedMap({"target": head.target, "family": head.family, "measured": None, "kernels": CommentedMap()})
    data.yaml_set_start_comment(HEADER.format(family=head.family, target=head.target))
    return data


def _measured(head: Head, policy: str, old: Any) -> CommentedMap:
    words = [
        f"{name} {head.machine[name]}" for name in ("torch", "triton", "driver", "compiler") if name in head.machine
    ]
    new = {"kind": head.kind, "device": head.machine["device"], "toolchain": ", ".join(words) or "none"}
    new |= {"policy": policy, "date": DoubleQuotedScalarString(head.date)}
    data = old if isinstance(old, CommentedMap) else CommentedMap()
    data.update(new)
    return data


def _rows(choices: Sequence[Choice], head: Head, old: Any) -> CommentedSeq:
    """Rows in place of the old ones; a comment behind a row goes to the new one with its predicate."""
    before = old if isinstance(old, CommentedSeq) else CommentedSeq()
    position = {str(row["when"]): number for number, row in enumerate(before)}
    rows = CommentedSeq(
        [_row(one, head, before[position[one.when]] if one.when in position else None) for one in choices]
    )
    for number, choice in enumerate(choices):
        if position.get(choice.when) in before.ca.items:
            rows.ca.items[number] = before.ca.items[position[choice.when]]
    return rows


def _row(choice: Choice, head: Head, old: Any) -> CommentedMap:
    """A row; `old`, with its comments, is filled anew where there is one."""
    row = old if isinstance(old, CommentedMap) else CommentedMap()
    row["when"] = DoubleQuotedScalarString(choice.when)
    row["tile"] = _flow(choice.tile)
    for name in ("shape", *_VALUE.values()):
        row.pop(name, None)
    if choice.entry is not None:
        row["shape"] = _flow(choice.entry.shape)
        value = choice.entry.value
        row[_VALUE[head.kind]] = round(value, 2) if head.kind == "time" else int(value)
    return row


def _flow(values: Mapping[str, int]) -> CommentedMap:
    data = CommentedMap(values)
    data.fa.set_flow_style()
    return data
