"""What `new-target` and `new-family` write works as it is, and they refuse what could not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dsv4gen.base import env
from dsv4gen.base.errors import DsvError, OutputError, UnknownTarget, UsageError
from dsv4gen.base.extensions import spec_folders
from dsv4gen.base.target_id import parse
from dsv4gen.emit.build import make_plans
from dsv4gen.render.render import render_triton
from dsv4gen.scaffold.family import LANGUAGES, new_family
from dsv4gen.scaffold.home import write_new
from dsv4gen.scaffold.target import nearest, new_target
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, list_targets, resolve_target
from dsv4gen.verify.triton_requests import labels, triton_requests
from tests.checkout import ROOT


def record(name: str) -> TargetRecord:
    return resolve_target(load_specs(*spec_folders()), name)


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty extension's folder that this process sees."""
    folder = tmp_path / "ext"
    folder.mkdir()
    monkeypatch.setenv(env.EXTENSIONS.name, str(folder))
    return folder


@pytest.mark.parametrize(
    ("name", "like"), [("gfx1299", "gfx1250"), ("gfx908", "gfx90a"), ("sm_110", "sm_100"), ("sm_88", "sm_89")]
)
def test_a_new_target_has_the_facts_of_the_nearest_one(extension: Path, name: str, like: str) -> None:
    assert new_target(name, folder=extension).like == like
    new, old = record(name), record(like)
    named = {path for path in new.facts if path.startswith(("compile.", "detect."))}
    assert {path: new.facts[path] for path in new.facts if path not in named} == {
        path: old.facts[path] for path in old.facts if path not in named
    }
    assert new.detect.capability == parse(name).capability
    assert name in (new.compile.clang or new.compile.nvrtc or "")
    assert new.also == ()
    assert {new.provenance[path].mark for path in named & set(new.provenance)} >= {"infer"}


def test_uncommenting_every_fact_changes_none(extension: Path) -> None:
    file = new_target("gfx1298", like="gfx942", folder=extension).file
    before = record("gfx1298").facts
    text = file.read_text(encoding="utf-8")
    head, comments = text.split("# found; docs/specs.md says what each means.\n")
    file.write_text(head + re.sub(r"(?m)^# ", "", comments), encoding="utf-8")
    assert record("gfx1298").facts == before
    assert {mark.mark for path, mark in record("gfx1298").provenance.items() if path.startswith("shared.")} == {"infer"}


@pytest.mark.parametrize(
    ("name", "like", "error", "words"),
    [
        ("gfx1200", None, UsageError, r"gfx1200 is described already, in specs/platforms/gfx1201.yaml"),
        ("sm_90", None, UsageError, r"sm_90 is described already"),
        ("sm_110a", None, UsageError, r"not an architecture's plain name"),
        ("11.0", None, UsageError, r"not an architecture's plain name"),
        ("gfx942:xnack-", None, UsageError, r"not an architecture's plain name"),
        ("Hopper", None, UnknownTarget, r"it names a family of devices"),
        (
            "gfx1299",
            "sm_90",
            UsageError,
            r"a hip device and sm_90 a cuda one\n.*leave --like out, .* gfx942",
        ),
        ("gfx1299", "gfx1200x", UnknownTarget, r"not an architecture name"),
    ],
)
def test_new_target_refuses(extension: Path, name: str, like: str | None, error: type[DsvError], words: str) -> None:
    with pytest.raises(error, match=words):
        new_target(name, like=like, folder=extension)
    assert list(extension.rglob("*")) == []


def test_the_nearest_target_is_of_the_same_vendor() -> None:
    known = list_targets(load_specs(*spec_folders()))
    assert nearest(parse("sm_121"), known) == "sm_120"
    assert nearest(parse("gfx940"), known) == "gfx942"
    assert nearest(parse("sm_75"), known) == "sm_80", "minors of another major"
    assert nearest(parse("gfx1030"), known) == "gfx1100"
    with pytest.raises(UsageError, match="no cuda target"):
        nearest(parse("sm_90"), ["gfx950"])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("topk", "there is a family topk already"),
        ("Argmax", "is not a family name"),
        ("arg-max", "is not a family name"),
        ("../x", "is not a family name"),
        ("lambda", "is not a family name"),
        ("best_cases", "cannot end in _cases"),
    ],
)
def test_new_family_refuses(extension: Path, name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        new_family(name, folder=extension)
    assert list(extension.rglob("*")) == []


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(UsageError, match=r"already there: .*b"):
        write_new({tmp_path / "a": "1", tmp_path / "b": "2"})
    with pytest.raises(OutputError, match="cannot write"):
        write_new({tmp_path / "a": "1", tmp_path / "b" / "c": "2"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").read_text() == "mine"


def test_without_a_checkout_a_folder_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.SPECS_DIR.name, str(tmp_path))
    with pytest.raises(UsageError, match="new files belong into a checkout") as caught:
        new_family("mine")
    assert "--folder" in caught.value.remedy


def test_new_families_pass_their_own_tests(extension: Path) -> None:
    """In both languages, in a process that knows them only as an extension."""
    for language in LANGUAGES:
        new_family(f"new_{language}", language=language, folder=extension)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(extension / "tests")]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_new_triton_family_states_what_verify_compiles(extension: Path) -> None:
    """Without these literals `dsv4gen verify` refuses the family."""
    new_family("stated", language="triton", folder=extension)
    (plan,) = make_plans(load_specs(*spec_folders()), "gfx950", ["stated"])
    rendered = render_triton(plan)
    requests = triton_requests(plan, rendered, extension / rendered.name)
    assert labels(requests) == ["count_row block=256 warps=1", "count_row block=1024 warps=4"]
    assert len(requests) == len(plan.kernel("count").buckets)
    assert all(set(request.attrs) == {"values", "out", "value_stride"} for request in requests)


def test_the_commands_print_json(extension: Path) -> None:
    for words in (["new-target", "gfx1299"], ["new-family", "mine"]):
        command = [sys.executable, "-m", "dsv4gen", *words, "--folder", str(extension), "--json"]
        done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert all(Path(file).is_file() for file in json.loads(done.stdout)["files"])


def test_the_new_family_can_be_timed(extension: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    import torch

    from dsv4gen import reference
    from dsv4gen.base.errors import VerifyError
    from dsv4gen.reference.workload import Request

    new_family("timed", folder=extension)
    monkeypatch.setattr(reference, "__path__", [*reference.__path__, str(extension / "reference")])
    shapes = load_specs(*spec_folders()).families["timed"].model.bench["rows"]
    assert shapes.op == "timed"
    workload = importlib.import_module("dsv4gen.reference.timed_bench").workload(
        Request("timed", shapes.op, {"rows": 20, "width": 9}, {}, {}, "cpu")
    )
    values = workload.make()[0].arguments
    right = (values["values"] > 0).sum(1).to(torch.int32)
    workload.judge(values, {**values, "out": right})
    with pytest.raises(VerifyError):
        workload.judge(values, {**values, "out": right + (right == right[-2])})
