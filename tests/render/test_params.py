"""The Params struct tells what each member is, in comments that cannot reach past their line."""

from __future__ import annotations

from dataclasses import replace

from dsv4gen.base import paths
from dsv4gen.emit.build import make_plans
from dsv4gen.render import render_source
from dsv4gen.spec import load_specs


def test_every_member_is_explained_where_the_spec_explains_it() -> None:
    (plan,) = make_plans(load_specs(paths.specs()), "sm_90", ["topk"])
    text = render_source(plan).text
    struct = text[text.index("struct Params {") : text.index("static_assert(sizeof(Params)")]
    members = struct.splitlines()[1:-1]
    assert [member for member in members if "  // " not in member] == []
    assert "  const u8* scores;  // [batch, width]: rows start at any score" in members
    assert "  i64 score_stride;  // elements from one entry of scores to the next along batch" in members
    assert "  u8* workspace;  // workspace of batch * split_row_bytes bytes" in members
    assert "  u32 page_bits;  // log2 of the page size in entries" in members


def test_a_comment_ends_with_its_line() -> None:
    """A backslash at a line's end would make the next member part of the comment."""
    (plan,) = make_plans(load_specs(paths.specs()), "sm_90", ["topk"])
    (op,) = plan.ops
    damaged = replace(plan, ops=(replace(op, params=op.params.documented({"k": "a path: C:\\", "width": ""})),))
    text = render_source(damaged).text
    assert "  u32 k;  // a path: C:\n" in text and "  u32 width;\n" in text
