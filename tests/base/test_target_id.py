"""Every spelling of BL-31, and which code runs on which device."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4gen.base.errors import UnknownTarget, UsageError
from dsv4gen.base.target_id import TargetId, from_device, parse, parse_list, runs_on

SPELLINGS = [
    ("gfx942:sramecc+:xnack-", TargetId("gfx942", (("sramecc", True), ("xnack", False)))),
    ("gfx942:xnack-:sramecc+", TargetId("gfx942", (("sramecc", True), ("xnack", False)))),
    ("gfx90a:sramecc+:xnack+", TargetId("gfx90a", (("sramecc", True), ("xnack", True)))),
    ("gfx90c:xnack-", TargetId("gfx90c", (("xnack", False),))),
    ("gfx950", TargetId("gfx950")),
    ("GFX942", TargetId("gfx942")),
    (" gfx1201\n", TargetId("gfx1201")),
    ("sm_90a", TargetId("sm_90", suffix="a")),
    ("SM_90A", TargetId("sm_90", suffix="a")),
    ("sm90", TargetId("sm_90")),
    ("compute_90", TargetId("sm_90", ptx=True)),
    ("90", TargetId("sm_90")),
    ("90a", TargetId("sm_90", suffix="a")),
    ("100", TargetId("sm_100")),
    ("9.0", TargetId("sm_90")),
    ("9.0a", TargetId("sm_90", suffix="a")),
    ("10.0+PTX", TargetId("sm_100", ptx=True)),
    ("12.0f", TargetId("sm_120", suffix="f")),
    ("10.3", TargetId("sm_103")),
    ("8.9", TargetId("sm_89")),
]

REFUSED = [
    ("", "it is empty"),
    ("gfx000", "stands for a CPU"),
    ("gfx11-generic", "a generic code object"),
    ("gfx9-4-generic", "a generic code object"),
    ("gfx950-dcgpu", "family of packages"),
    ("gfx94X", "not an architecture name"),
    ("gfx", "not an architecture name"),
    ("gfx942:xnack", "not a feature"),
    ("gfx942:", "not a feature"),
    ("gfx942:xnack+:xnack-", "given twice"),
    ("native", "use the device in this machine"),
    ("Hopper", "write sm_90"),
    ("8.10", "one digit after the point"),
    ("9", "expected a name such as"),
    ("9.0b", "expected a name such as"),
    ("sm_9", "expected a name such as"),
    ("sm_90ax", "expected a name such as"),
    ("cpu", "expected a name such as"),
    ("9.0;10.0", "expected a name such as"),
]


@pytest.mark.parametrize(("text", "expected"), SPELLINGS)
def test_spelling(text: str, expected: TargetId) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(UnknownTarget, match=reason):
        parse(text)


def test_refusal_lists_the_known_targets_and_the_nearest() -> None:
    with pytest.raises(UnknownTarget) as caught:
        parse("gfx94", known=("gfx942", "sm_90"))
    assert "did you mean 'gfx942'?" in str(caught.value)
    assert "known targets: gfx942, sm_90" in str(caught.value)


def test_lists_split_on_all_separators() -> None:
    assert [str(one) for one in parse_list("8.0;8.6 9.0a")] == ["sm_80", "sm_86", "sm_90a"]
    assert [str(one) for one in parse_list("gfx942,\tgfx950 ; sm_80,")] == ["gfx942", "gfx950", "sm_80"]
    assert parse_list("") == ()


def test_lists_name_a_target_once() -> None:
    with pytest.raises(UsageError, match=r"names sm_90 twice: '9\.0' and 'SM_90'"):
        parse_list("9.0;8.0,SM_90")
    assert len(parse_list("9.0;9.0a;9.0+PTX")) == 3


def test_lists_leave_out_the_cpu_but_nothing_else() -> None:
    assert [str(one) for one in parse_list("gfx000 gfx1100")] == ["gfx1100"]
    with pytest.raises(UnknownTarget):
        parse_list("gfx1100;oops")


def test_capability_alone_does_not_decide() -> None:
    assert from_device("7.1", (9, 0), "gfx90a:sramecc+:xnack-").arch == "gfx90a"
    assert from_device(None, (9, 0), "NVIDIA H200").arch == "sm_90"
    assert from_device(None, (12, 0), "gfx1201 lookalike") == TargetId("sm_120")
    with pytest.raises(UnknownTarget):
        from_device("7.1", (9, 0), "")


@pytest.mark.parametrize(
    ("code", "device", "runs"),
    [
        ("sm_90a", "9.0", True),
        ("sm_100a", "10.3", False),
        ("sm_100f", "10.3", True),
        ("sm_103f", "10.0", False),
        ("sm_120a", "12.1", False),
        ("sm_120f", "12.1", True),
        ("sm_80", "8.9", True),
        ("sm_89", "8.0", False),
        ("sm_80", "9.0", False),
        ("compute_80", "9.0", True),
        ("compute_90", "8.9", False),
        ("9.0a+PTX", "10.0", False),
        ("gfx942", "gfx942:sramecc+:xnack-", True),
        ("gfx942:xnack-", "gfx942:sramecc+:xnack-", True),
        ("gfx942:xnack-", "gfx942:sramecc+:xnack+", False),
        ("gfx942:xnack+", "gfx942", False),
        ("gfx942", "gfx950", False),
        ("gfx90a", "9.0", False),
    ],
)
def test_runs_on(code: str, device: str, runs: bool) -> None:
    assert runs_on(parse(code), parse(device)) is runs


FEATURES = st.dictionaries(st.sampled_from(("sramecc", "xnack")), st.booleans())
GFX = st.sampled_from(("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"))
CAPABILITY = st.tuples(st.integers(5, 13), st.integers(0, 9))


@given(GFX, FEATURES, st.randoms(use_true_random=False))
def test_features_survive_in_any_order_and_case(arch: str, features: dict[str, bool], random: object) -> None:
    switches = [f":{name}{'+' if on else '-'}" for name, on in features.items()]
    random.shuffle(switches)  # type: ignore[attr-defined]
    found = parse((arch + "".join(switches)).upper())
    assert (found.arch, dict(found.features)) == (arch, features)
    assert parse(str(found)) == found


@given(CAPABILITY, st.sampled_from(("", "a", "f")), st.booleans())
def test_all_cuda_spellings_agree(capability: tuple[int, int], suffix: str, ptx: bool) -> None:
    major, minor = capability
    tail = suffix + ("+PTX" if ptx else "")
    spellings = [f"sm_{major}{minor}{tail}", f"{major}.{minor}{tail}", f"{major}{minor}{tail}"]
    found = {parse(text) for text in spellings}
    assert found == {TargetId(f"sm_{major}{minor}", suffix=suffix, ptx=ptx)}
    assert found.pop().capability == capability


@given(CAPABILITY, CAPABILITY)
def test_suffix_a_runs_on_its_own_device_only(code: tuple[int, int], device: tuple[int, int]) -> None:
    exact = TargetId(f"sm_{code[0]}{code[1]}", suffix="a")
    assert runs_on(exact, from_device(None, device, "")) is (code == device)


@given(st.text(max_size=20))
def test_any_text_is_an_id_or_a_clean_refusal(text: str) -> None:
    try:
        found = parse(text)
    except UnknownTarget:
        return
    assert parse(str(found)) == found
