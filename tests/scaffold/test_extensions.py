"""Specs, templates and references of other distributions: they add, never replace, and templates stay sandboxed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import dsv4gen.reference
from dsv4gen.base import env, extensions, stamp
from dsv4gen.base.errors import DsvError, SpecError, TemplateError
from dsv4gen.base.extensions import reference_folders, spec_folders, template_folders
from dsv4gen.emit.select import known_targets
from dsv4gen.render.environment import make_environment, render_template
from dsv4gen.scaffold.family import new_family
from dsv4gen.scaffold.target import new_target
from dsv4gen.spec import load_specs
from tests.checkout import ROOT, Checkout, copy_checkout


@pytest.fixture
def extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty extension's folder that this process sees."""
    folder = tmp_path / "ext"
    folder.mkdir()
    monkeypatch.setenv(env.EXTENSIONS.name, str(folder))
    return folder


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_an_extension_adds_families_targets_and_references(extension: Path) -> None:
    new_family("added", folder=extension)
    new_target("gfx1299", folder=extension)
    specs = load_specs(*spec_folders())
    assert {"added", "topk"} <= set(specs.families)
    assert {"gfx1299", "gfx950"} <= set(known_targets())
    assert reference_folders(ROOT / "dsv4gen" / "reference") == (extension / "reference",)


def test_none_leaves_every_extension_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.EXTENSIONS.name, "none")
    assert extensions.extensions() == ()
    assert len(spec_folders()) == len(template_folders()) == 1


def test_several_folders_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a"):
        (tmp_path / name / "specs").mkdir(parents=True)
    monkeypatch.setenv(env.EXTENSIONS.name, os.pathsep.join((str(tmp_path / "b"), str(tmp_path / "a"))))
    assert [folder.parent.name for folder in spec_folders()[1:]] == ["b", "a"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.EXTENSIONS.name, str(tmp_path / "gone"))
    with pytest.raises(SpecError, match="gone is not a folder"):
        spec_folders()


@pytest.mark.parametrize("name", ["families/topk.yaml", "platforms/gfx950.yaml", "platforms/_cdna.yaml"])
def test_a_spec_that_exists_already_is_an_error_naming_both_files(extension: Path, name: str) -> None:
    copied = put(extension, f"specs/{name}", (ROOT / "specs" / name).read_text(encoding="utf-8"))
    with pytest.raises(SpecError) as caught:
        load_specs(*spec_folders())
    assert caught.value.place is not None
    assert caught.value.place.file == str(copied)
    assert f"is described in specs/{name} too" in caught.value.message


def test_two_extensions_with_the_same_family_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        new_family("twice", folder=folder)
    monkeypatch.setenv(env.EXTENSIONS.name, os.pathsep.join(map(str, folders)))
    with pytest.raises(SpecError, match=r"one/specs/families/twice\.yaml too"):
        load_specs(*spec_folders())
    with pytest.raises(SpecError, match=r"the reference twice exists twice: .*one.* and .*two"):
        reference_folders(ROOT / "dsv4gen" / "reference")


def test_a_reference_cannot_hide_one_of_ours(extension: Path) -> None:
    put(extension, "reference/topk.py", "")
    with pytest.raises(SpecError, match="the reference topk exists twice"):
        reference_folders(ROOT / "dsv4gen" / "reference")


def render(name: str) -> str:
    first, *others = template_folders()
    return render_template(make_environment(first, {"wave", "names"}, others), name, {"wave": 32, "names": []})


def test_a_template_that_exists_already_is_an_error_naming_both_files(extension: Path) -> None:
    put(extension, "templates/macros/params.jinja", "")
    put(extension, "templates/hip_cuda/mine.cu.jinja", '{% from "macros/params.jinja" import params_struct %}\n')
    with pytest.raises(TemplateError, match=r"exists twice: templates/macros/params.jinja and .*ext/templates/macros"):
        render("hip_cuda/mine.cu.jinja")


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ wave.__init__.__globals__ }}",
        "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
        "{{ lipsum.__globals__['os'].popen('id').read() }}",
        "{{ cycler.__init__.__globals__.os.system('id') }}",
        "{{ '%s' | attr('__class__') }}",
        "{{ '{0.__class__}'.format(wave) }}",
        "{% set _ = names.append(1) %}",
        '{% include "../specs/families/topk.yaml" %}',
        '{% include "/etc/hostname" %}',
    ],
)
def test_a_template_reaches_nothing_but_its_context(extension: Path, text: str) -> None:
    put(extension, "templates/hip_cuda/hostile.cu.jinja", text + "\n")
    with pytest.raises(DsvError, match=r"unsafe|no template"):
        print(render("hip_cuda/hostile.cu.jinja"))


def test_what_an_extension_holds_is_part_of_the_inputs(extension: Path) -> None:
    def digest() -> str:
        return stamp.input_digest(spec_folders()[0], template_folders()[0])

    seen = [digest()]
    new_family("added", folder=extension)
    seen.append(digest())
    put(extension, "templates/hip_cuda/added.cu.jinja", "// other\n")
    seen.append(digest())
    assert len(set(seen)) == 3


def test_a_saved_template_is_read_again_within_one_process(extension: Path) -> None:
    put(extension, "templates/t.jinja", "one\n")
    first, *others = template_folders()
    environment = make_environment(first, set(), others)
    assert "one" in render_template(environment, "t.jinja", {})
    put(extension, "templates/t.jinja", "two\n")
    assert "two" in render_template(environment, "t.jinja", {})


@pytest.fixture
def installed(tmp_path: Path) -> tuple[Checkout, Path]:
    """A distribution with an extension on the search path; importing its package would fail."""
    site = tmp_path / "site"
    new_family("acme_best", folder=site / "acme_kernels")
    put(site, "acme_kernels/__init__.py", "raise RuntimeError('an extension is never imported')\n")
    put(site, "acme_kernels-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: acme-kernels\nVersion: 1.0\n")
    put(site, "acme_kernels-1.0.dist-info/entry_points.txt", "[dsv4gen.specs]\nacme = acme_kernels\n")
    root = tmp_path / "checkout"
    root.mkdir()
    return copy_checkout(root), site


def test_an_installed_distribution_adds_its_folder(installed: tuple[Checkout, Path]) -> None:
    checkout, site = installed
    variables = {"PYTHONPATH": f"{checkout.root}{os.pathsep}{site}", env.EXTENSIONS.name: ""}
    done = checkout.run("dsv4gen", "build", "--target", "sm_90", "--json", **variables)
    assert done.returncode == 0, done.stderr
    assert "acme_best.cu" in json.loads(done.stdout)[0]["changed"]
    script = "import dsv4gen.reference.acme_best_cases as m; print(m.__file__)"
    assert str(site) in checkout.run("python", "-c", script, **variables).stdout
    without = {**variables, env.EXTENSIONS.name: "none"}
    done = checkout.run("dsv4gen", "build", "--target", "sm_90", "--family", "acme_best", **without)
    assert "no family 'acme_best'" in done.stderr


def test_an_entry_point_without_its_package_is_named(installed: tuple[Checkout, Path]) -> None:
    checkout, site = installed
    put(site, "acme_kernels-1.0.dist-info/entry_points.txt", "[dsv4gen.specs]\nacme = acme_gone\n")
    variables = {"PYTHONPATH": f"{checkout.root}{os.pathsep}{site}", env.EXTENSIONS.name: ""}
    done = checkout.run("dsv4gen", "list", **variables)
    assert done.returncode == 2
    assert "entry point acme of acme-kernels in dsv4gen.specs: 'acme_gone' is not a package" in done.stderr
    assert "DSV4GEN_EXTENSIONS=none" in done.stderr


def test_the_reference_package_is_ours_first() -> None:
    assert Path(dsv4gen.reference.__path__[0]) == ROOT / "dsv4gen" / "reference"
