"""A source has an entry for every kernel of its plan; one that is missing is named at the spec's line."""

from __future__ import annotations

import pytest

from dsv4gen.base.extensions import spec_folders
from dsv4gen.emit.build import make_plans
from dsv4gen.render import missing_entries, render_source
from dsv4gen.spec import load_specs

SYMBOL = "topk_v1_dual_t512"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (f"// ---- entry: {SYMBOL} ----", "//", f"has no entry for {SYMBOL} of kernel legacy"),
        ("// ---- entry: topk_v1_", "// ---- entry: topk_v9_", "t512 and 2 more of kernel legacy"),
        (f"void {SYMBOL}(", "void other(", f"has no function {SYMBOL} of kernel legacy behind the entry's line"),
    ],
)
def test_a_planned_kernel_without_an_entry(old: str, new: str, expected: str) -> None:
    (plan,) = make_plans(load_specs(*spec_folders()), "gfx950", ["topk"])
    text = render_source(plan).text
    assert not list(missing_entries(text, plan))
    assert old in text
    (found,) = missing_entries(text.replace(old, new), plan)
    assert expected in found.message and found.message.startswith("templates/hip_cuda/topk.cu.jinja has no")
    assert found.place is not None and found.place == plan.kernel("legacy").place
    assert (found.place.file, found.place.line is None) == ("specs/families/topk.yaml", False)
