"""A manifest or plan with any value of another kind is named with its file, or works; no raw exception comes out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import dsv4gen
from dsv4gen.base.errors import DsvError, LoadError, ManifestError
from dsv4gen.base.manifest import digest_bytes, json_text, read_manifest, require_intact
from dsv4gen.base.target_id import parse
from dsv4gen.bench.cells import Wanted, cells_of
from dsv4gen.runtime import selection
from dsv4gen.runtime.family import GeneratedFamily
from dsv4gen.runtime.load import any_entry
from dsv4gen.runtime.read_table import make_table
from tests.runtime import synthetic

OTHERS: tuple[Any, ...] = (None, True, 7, 1.5, "word", [], [1, 2], {}, {"a": 1})
SHAPE = {"rows": 2, "width": 5000}


def family() -> dict[str, Any]:
    """The demo family with a row in every table that it leaves empty."""
    data = synthetic.demo_family()
    data["proofs"] = [{"subject": "tiles", "cells": ["threads", "128", "fits"]}]
    data["shapes"] = {"test": [SHAPE]}
    floors = {"bytes": synthetic.expression("width"), "flops": synthetic.expression(0)}
    data["bench"] = {"rows": {"op": "run", "options": {"mode": "plain"}, "shapes": [SHAPE], "floors": floors}}
    data["launchers"] = {
        "run": {"required": ["data", "out"], "defaults": {"scale": 1.0, "bias": None, "mode": "plain"}}
    }
    data["axes"]["width"] = {**data["axes"]["width"], "when": None}
    data["kernels"]["old"]["row_paths"] = [{"name": "all", "prefer": synthetic.expression(True)}]
    data["kernels"]["old"]["refused_tiles"] = [{"tile": {"block_threads": 2048}, "reason": "too many"}]
    return data


def damaged(data: Any) -> Iterator[tuple[str, Any]]:
    """The data with each value in turn replaced by one of each other kind, and with each key left out."""
    for keys in paths(data, ()):
        value = at(data, keys)
        for other in OTHERS:
            if type(other) is not type(value) or (isinstance(other, list | dict) and other != value):
                changed = copy.deepcopy(data)
                at(changed, keys[:-1])[keys[-1]] = other
                yield f"{keys} is {other!r}", changed
        if isinstance(keys[-1], str):
            changed = copy.deepcopy(data)
            del at(changed, keys[:-1])[keys[-1]]
            yield f"{keys} is missing", changed


def paths(data: Any, before: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield (*before, key)
        yield from paths(data[key], (*before, key))


def at(data: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        data = data[key]
    return data


def uses(root: Path) -> dict[str, Callable[[], object]]:
    """All that reads a manifest or a plan without a device."""
    module = GeneratedFamily(str(root / "sm_90" / "demo.py"), "demo")
    return {
        "choose": lambda: selection.choose("demo", parse("sm_90"), "it", root),
        "also": lambda: selection.choose("demo", parse("gfx942"), "it", root),
        "families": dsv4gen.families,
        "targets": dsv4gen.targets,
        "entry": lambda: any_entry("demo"),
        "explain": lambda: str(dsv4gen.explain("demo", target="sm_90", **SHAPE)),
        "module": lambda: str(module.explain(**SHAPE)),
        "table": lambda: [make_table("demo", module.entry, op, {"mode": "extra"}) for op in module.entry["ops"]],
        "cells": lambda: cells_of("demo", module.entry, Wanted((), {}, {})),
        "intact": lambda: require_intact(read_manifest(root / "sm_90"), root / "sm_90"),
    }


#: those that read a plan
OF_PLANS = ("explain", "module", "table", "cells")


def tried(root: Path, what: str, file: str, only: Sequence[str] = ()) -> int:
    """How many uses refuse it; each refusal names the file."""
    refused = 0
    for name, use in ((name, use) for name, use in uses(root).items() if not only or name in only):
        try:
            use()
        except DsvError as error:
            refused += 1
            if isinstance(error, ManifestError):
                assert file in str(error) or "demo" in str(error) or "sm_90" in str(error), (what, name, str(error))
                assert error.remedy, (what, name)
        except Exception as error:
            pytest.fail(f"{what}: {name} raises {type(error).__name__}: {error}")
    return refused


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A generated root in use."""
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(tmp_path))
    synthetic.write_folder(tmp_path, families={"demo": family()})
    return tmp_path


def test_a_sound_folder_is_used(root: Path) -> None:
    assert tried(root, "sound", "") == 1, "gfx942 is not there"


def test_every_damage_of_the_manifest(root: Path) -> None:
    file = root / "sm_90" / "manifest.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["target"] |= {"units": 132, "dies": [[304, 8]], "also": ["sm_91"]}
    for what, changed in damaged(data):
        file.write_text(json.dumps(changed), encoding="utf-8")
        tried(root, what, "manifest.json")


def test_every_damage_of_a_plan(root: Path) -> None:
    folder = root / "sm_90"
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    cases = 0
    for what, changed in damaged(family()):
        text = json_text(changed).encode()
        (folder / "plans" / "demo.json").write_bytes(text)
        manifest["outputs"]["plans/demo.json"] = digest_bytes(text)
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
        tried(root, what, "plans/demo.json", OF_PLANS)
        cases += 1
    assert cases > 1000


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "1" * 5000, "null", "[]", '{"schema": NaN}', "\ud800"])
@pytest.mark.parametrize("name", ["manifest.json", "plans/demo.json"])
def test_a_file_that_is_no_json_object(root: Path, name: str, text: str) -> None:
    folder, data = root / "sm_90", text.encode("utf-8", "surrogatepass")
    if name != "manifest.json":
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        manifest["outputs"][name] = digest_bytes(data)
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / name).write_bytes(data)
    with pytest.raises(ManifestError, match=name):
        _ = read_manifest(folder).families["demo"]
    assert tried(root, text[:9], name) > 2


@pytest.mark.parametrize("name", ["manifest.json", "plans/demo.json", "demo.cu"])
def test_a_folder_in_the_place_of_a_file(root: Path, name: str) -> None:
    path = root / "sm_90" / name
    path.unlink()
    path.mkdir()
    with pytest.raises(ManifestError) as caught:
        manifest = read_manifest(root / "sm_90")
        require_intact(manifest, root / "sm_90")
    assert name in str(caught.value) and "folder" in caught.value.message
    assert "remove" in caught.value.remedy and "dsv4gen build --target sm_90" in caught.value.remedy
    tried(root, name, name)


def test_the_value_is_named_by_its_keys(root: Path) -> None:
    file = root / "sm_90" / "manifest.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**data, "families": [1, 2]}), encoding="utf-8")
    with pytest.raises(LoadError, match=r"manifest.json: damaged manifest: families\[0\]: text expected, not 1"):
        selection.choose("demo", parse("sm_90"), "it", root)
