"""docs/oracles.md against the tables that the mutation tests run: every defect, and nothing that is not tried."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

import tests.compress.test_mutations as compress
import tests.indexer_logits.test_mutations as indexer_logits
import tests.qk_norm_rope.test_mutations as qk_norm_rope
import tests.sparse_decode.test_mutations as sparse_decode
import tests.topk.test_cluster_bugs as topk_clusters
import tests.topk.test_few_tied as topk_tied
import tests.topk.test_mutations as topk
import tests.topk.test_options as topk_options
import tests.topk.test_sampled as topk_sampled
import tests.topk.test_split as split
import tests.topk.test_split_options as split_options
import tests.triton.test_mutations as gather_dequant
from dsv4gen.base import paths
from tests.simt.layers import WAVE_BUGS

TABLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "gather_dequant": gather_dequant.MUTATIONS,
    "sparse_decode": sparse_decode.MUTATIONS,
    "compress": compress.MUTATIONS,
    "qk_norm_rope": qk_norm_rope.MUTATIONS,
    "indexer_logits": indexer_logits.MUTATIONS,
}


def rows(family: str) -> dict[str, list[str]]:
    """Defect -> the other columns of its row in the family's section."""
    root = paths.checkout()
    assert root is not None
    page = (root / "docs" / "oracles.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {family}\n")[1].split("\n## ")[0]
    found = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {defect.strip(" `"): [column.strip() for column in columns] for defect, *columns in found}


@pytest.mark.parametrize("family", TABLES)
def test_defects_and_their_checks_are_those_of_the_tests(family: str) -> None:
    listed = {defect: tuple(re.findall(r"`(\w+)`", columns[1])) for defect, columns in rows(family).items()}
    assert listed == TABLES[family]


def test_defects_of_topk_by_wave_size() -> None:
    listed = {defect: tuple(columns[1:]) for defect, columns in rows("topk").items()}
    waves = dict.fromkeys(WAVE_BUGS, ("rejected", "harmless"))
    everywhere = (*topk.MISSING_PIECES, *topk.WINDOW_BUGS, *topk_options.OPTION_BUGS)
    everywhere += (*topk_sampled.SAMPLE_BUGS, *topk_clusters.CLUSTER_BUGS, *topk_tied.TIE_BUGS)
    assert listed == {**waves, **dict.fromkeys(everywhere, ("rejected", "rejected"))}


def test_defects_of_split_rows() -> None:
    tried = {*split.MUTATIONS, *split_options.BUGS, *split_options.SORT_BUGS, "missing_fence", "places_wrap"}
    assert set(rows("topk in two launches")) == tried
