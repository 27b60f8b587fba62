"""Target ids as drivers, build systems and people spell them, on the way to a platform record (BL-31)."""

from __future__ import annotations

import pytest

from dsv4gen.base import env, extensions
from dsv4gen.base.errors import DsvError, UnknownTarget, UsageError
from dsv4gen.base.target_id import from_device, parse
from dsv4gen.emit.select import known_targets, select_targets
from dsv4gen.runtime.selection import own_architecture
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import resolve_target


@pytest.fixture(scope="module")
def specs() -> Specs:
    return load_specs(*extensions.spec_folders())


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("gfx942:sramecc+:xnack-", ("gfx942",)),
        ("gfx90a:sramecc+:xnack+", ("gfx90a",)),
        ("GFX942", ("gfx942",)),
        ("gfx1200", ("gfx1201",)),
        ("gfx1151", ("gfx1100",)),
        ("sm_90a", ("sm_90",)),
        ("9.0", ("sm_90",)),
        ("90", ("sm_90",)),
        ("9.0a", ("sm_90",)),
        ("10.0+PTX", ("sm_100",)),
        ("10.3", ("sm_100",)),
        ("12.1a", ("sm_120",)),
        ("8.7", ("sm_80",)),
        ("gfx942;gfx950", ("gfx942", "gfx950")),
        ("8.0;8.9 9.0a", ("sm_80", "sm_89", "sm_90")),
        ("gfx000, gfx950", ("gfx950",)),
        ("sm_80,sm_86", ("sm_80",)),
    ],
)
def test_a_spelling_selects_its_target(word: str, names: tuple[str, ...]) -> None:
    assert select_targets([word]) == names


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("gfx11-generic", "a generic code object runs on several devices"),
        ("gfx9-4-generic", "a generic code object runs on several devices"),
        ("gfx950-dcgpu", "this names a family of packages"),
        ("gfx90c:xnack-", "no platform file describes 'gfx90c'"),
        ("gfx1201:xnack-", "gfx1201 has no target-id feature 'xnack'"),
        ("gfx942:sramec+", "gfx942 has no target-id feature 'sramec'"),
        ("gfx000", "gfx000 stands for a CPU"),
        ("native", "leave the target out"),
        ("Hopper", "it names a family of devices; write sm_90"),
        ("8.10", "a compute capability has one digit after the point"),
        ("sm_70", "no platform file describes 'sm_70'"),
        ("gfx95", "did you mean 'gfx950'?"),
        ("all,gfx950", "'all' is not a GPU target"),
        ("gfx950;sm_70", "no platform file describes 'sm_70'"),
    ],
)
def test_a_refusal_says_why_and_lists_what_there_is(word: str, words: str) -> None:
    with pytest.raises(UnknownTarget) as caught:
        select_targets([word])
    assert words in caught.value.message
    assert caught.value.remedy == f"known targets: {', '.join(known_targets())}"


def test_a_list_means_a_list_and_names_nothing_twice() -> None:
    with pytest.raises(UsageError, match=r"names sm_90 twice: '9\.0' and 'sm_90'"):
        select_targets(["9.0;sm_90"])


def test_the_variable_may_hold_any_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.TARGET.name, "gfx942:sramecc+:xnack-;9.0")
    assert select_targets([]) == ("gfx942", "sm_90")
    monkeypatch.setenv(env.TARGET.name, "")
    with pytest.raises(UsageError, match="no target given"):
        select_targets([])


@pytest.mark.parametrize(
    ("capability", "target", "arch"),
    [((10, 3), "sm_100", "sm_103a"), ((12, 1), "sm_120", "sm_121a"), ((8, 9), "sm_89", "sm_89")],
)
def test_a_device_gets_code_of_its_own(specs: Specs, capability: tuple[int, int], target: str, arch: str) -> None:
    """(10, 3) never gets sm_100a, nor (12, 1) sm_120a: code with that suffix runs on one device only."""
    device = from_device(None, capability, "NVIDIA B300")
    record = resolve_target(specs, str(device))
    assert (record.name, record.compile.nvrtc) == (target, arch)
    main = resolve_target(specs, target).compile.nvrtc or ""
    assert own_architecture(main, device) == arch or device.arch == target


def test_every_known_name_is_its_own_spelling(specs: Specs) -> None:
    for name in known_targets():
        record = resolve_target(specs, name)
        assert parse(name).api == record.detect.api
        for also in record.also:
            assert resolve_target(specs, also.device).name == name
        for feature in record.detect.features:
            assert resolve_target(specs, f"{name}:{feature}-").name == name
            with pytest.raises(DsvError, match="given twice"):
                resolve_target(specs, f"{name}:{feature}-:{feature}+")
