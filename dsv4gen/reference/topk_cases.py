"""The case matrix of top-k, shared by tests and `verify`: factors, designs, and tensors for a case.

A case is launched with two rows, the second a third as long and at another alignment. Columns outside of a row or
window are poisoned, outputs lie between guard words, and rows are further apart than their width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError, did_you_mean
from dsv4gen.reference import topk
from dsv4gen.reference.covering import Row, covering_design
from dsv4gen.reference.hazards import Poisoned, poisoned
from dsv4gen.reference.topk_rows import MODES, PAGED, WINDOWED, Rows
from dsv4gen.reference.topk_scores import SCORES, make_scores

TAILS = {"nan": float("nan"), "inf": float("inf"), "1e30": 1e30}
ORDERS = ("ascending", "descending", "random:1", "random:2")
#: lengths relative to k, and around every switch of a row path at some tile
LENGTHS = (
    *("0", "1", "k-1", "k", "k+1", "2047", "2048", "2049", "4095", "4096", "4097", "8191", "8192", "8193"),
    *("16383", "16384", "16385", "32768", "32769", "65535", "65536", "65537"),
)
#: past what a cluster of eight blocks keeps in registers, with the smaller and with the larger tile
LONG_LENGTHS = (200_001, 262_149)
LEVELS: dict[str, Sequence[str]] = {
    "scores": tuple(SCORES),
    "length": LENGTHS,
    "k": ("1", "7", "511", "512", "513", "1024", "2047", "2048"),
    "mode": MODES,
    "tail": tuple(TAILS),
    "head": ("0", "1", "2", "3"),
    "seq_stride": ("1", "2"),
    "page_bits": ("0", "4", "8"),
    "start": ("none", "0", "1", "3", "4099"),
    "mapped": ("no", "yes"),
    "order": ORDERS,
}
_ROWS = 2
_OFFSETS = (4321, -7)
#: rows of a page table that is shared, and which of them each row of scores uses
_TABLES, _ROW_TO_BATCH = 3, (2, 0)
_TAIL_COLUMNS = 5
_GUARD = 3
_UNWRITTEN = -559038737


@dataclass(frozen=True)
class Case:
    """One launch. `kernel` is the caller's name for what it runs; `head` counts the scores by which the first row
    starts off a 16-byte boundary; `order` is an emulator's thread order. `start`, the first column of a window, and
    `mapped`, whether rows share page tables, count in the modes that have them."""

    kernel: str
    scores: str
    length: int
    k: int
    mode: str = "indices"
    tail: str = "nan"
    head: int = 0
    seq_stride: int = 1
    page_bits: int = 0
    start: int | None = None
    mapped: bool = False
    order: str = "ascending"
    score_dtype: str = "f32"
    rules: topk.Rules = topk.ANY

    @property
    def options(self) -> dict[str, str]:
        """Compile-time options by name."""
        return {"mode": self.mode, "score_dtype": self.score_dtype, **vars(self.rules)}

    def __str__(self) -> str:
        where = f"head {self.head}, seq_stride {self.seq_stride}, page_bits {self.page_bits}, {self.order}"
        where += f", start {self.start}" if self.mode in WINDOWED else ""
        where += ", mapped" if self.mode == "packed" and self.mapped else ""
        where += "" if self.score_dtype == "f32" else f", {self.score_dtype}"
        where += "".join(
            f", {name} {choice}" for name, choice in vars(self.rules).items() if choice != getattr(topk.ANY, name)
        )
        return f"{self.kernel}: {self.scores}, length {self.length}, k {self.k}, {self.mode}, tail {self.tail}, {where}"


@dataclass(frozen=True)
class Problem:
    """A case's tensors, on the CPU.

    Attributes:
        rows: what the op takes: scores with any row stride and alignment, seq_lens strided, and the mode's tensors.
        out, raw_out: int32 [rows, k] between guard words; raw_out in mode `dual` only.
    """

    case: Case
    rows: Rows
    out: Poisoned
    raw_out: Poisoned | None
    scores_before: Tensor

    @property
    def scores(self) -> Tensor:
        """float32 [rows, width]."""
        return self.rows.scores

    def values(self) -> dict[str, Tensor | int]:
        """Parameters of the kernels by name; a tensor that the mode lacks is 0."""
        rows = self.rows
        found: dict[str, Tensor | int] = {
            **{name: _or_zero(getattr(rows, name)) for name in _INPUTS},
            "out": self.out.tensor,
            "raw_out": 0 if self.raw_out is None else self.raw_out.tensor,
            "workspace": 0,
            "batch": rows.scores.shape[0],
            "width": rows.scores.shape[1],
            "k": self.case.k,
            "pages": 0 if rows.page_table is None else rows.page_table.shape[1],
            "page_bits": self.case.page_bits,
            "tables": rows.page_table.shape[0] if rows.page_table is not None and rows.mode == "packed" else 0,
        }
        for stride, name in _STRIDES.items():
            tensor = found[name]
            found[stride] = tensor if isinstance(tensor, int) else tensor.stride(0)
        return found

    def check(self) -> None:
        """Judge what a kernel wrote.

        Raises:
            VerifyError: a wrong selection, a changed score, or a word written outside of the outputs.
        """
        if not torch.equal(bits_of(self.scores), self.scores_before):
            raise VerifyError(f"{self.case}: scores were written")
        for name, output in (("out", self.out), ("raw_out", self.raw_out)):
            if output is not None:
                output.check_surroundings(f"{self.case}: {name}")
        selection = topk.Selection(self.out.tensor, None if self.raw_out is None else self.raw_out.tensor)
        try:
            topk.check_selection(selection, self.rows, self.case.rules)
        except VerifyError as error:
            raise VerifyError(f"{self.case}: {error.message}") from error


def bits_of(scores: Tensor) -> Tensor:
    """A copy of the scores' bit patterns, which compare equal where NaN does not."""
    return scores.contiguous().view(torch.int32 if scores.dtype is torch.float32 else torch.int16).clone()


_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
_INPUTS = ("scores", "seq_lens", "page_table", "row_starts", "out_offsets", "row_to_batch")
_NUMBERS = dict.fromkeys(PAGED, ("page_bits",))
_STRIDES = {
    "score_stride": "scores",
    "seq_stride": "seq_lens",
    "table_stride": "page_table",
    "out_stride": "out",
    "raw_stride": "raw_out",
}


def _or_zero(tensor: Tensor | None) -> Tensor | int:
    return 0 if tensor is None else tensor


def covering_cases(kernels: Sequence[str]) -> list[Case]:
    """Every (scores, length), and every pair of levels of any two factors, kernels among them."""
    return [_case(row) for row in covering_design({**LEVELS, "kernel": kernels}, full=("scores", "length"))]


def full_cases(kernels: Sequence[str]) -> Iterator[Case]:
    """Every (kernel, scores, length, k); the other factors in pairs."""
    levels = {**LEVELS, "kernel": kernels}
    return (_case(row) for row in covering_design(levels, full=("kernel", "scores", "length", "k")))


def edge_cases(edges: Mapping[str, Sequence[int]], *, k: int = 512) -> list[Case]:
    """Lengths around each kernel's switches of row path, at every alignment.

    Args:
        edges: kernel -> largest values of head + length of its row paths.
    """
    return [
        Case(kernel, "normal", edge - head + step, k, head=head)
        for kernel, limits in edges.items()
        for edge in limits
        for head in range(4)
        for step in (-1, 0, 1)
    ]


def option_cases(kernels: Sequence[str]) -> list[Case]:
    """Every choice of the rules in pairs, on scores with plateaus at the border, and on ordinary ones."""
    levels: dict[str, Sequence[str]] = {
        **topk.CHOICES,
        "score_dtype": tuple(_DTYPES),
        "kernel": kernels,
        "scores": ("normal", "zeros_60", "eight_values", "all_equal", "mixed_zeros", "nan_4096", "one_bin"),
        "length": ("k", "k+1", "2049", "8193", "16385"),
        "k": ("7", "512", "2048"),
        "mode": ("indices", "packed"),
        "order": ORDERS,
    }
    fixed = {"tail": "inf", "head": "1", "seq_stride": "1", "page_bits": "4", "start": "3", "mapped": "yes"}
    rows = covering_design(levels, full=("scores", *topk.CHOICES))
    cases = [
        replace(
            _case({**row, **fixed}),
            rules=topk.Rules(**{name: row[name] for name in topk.CHOICES}),
            score_dtype=row["score_dtype"],
        )
        for row in rows
    ]
    return [case for case in cases if (case.rules, case.score_dtype) != (topk.ANY, "f32")]


def few_option_cases(kernel: str) -> list[Case]:
    """Every choice once or twice: each combination is compiled on its own, so `verify` runs few. Some rows are long
    enough for blocks to share them."""
    chosen = (
        (topk.Rules("low", "drop", "index"), "f32", "nan_4096", 8193),
        (topk.Rules("low", "drop", "index"), "f32", "sparse_zeros", 20001),
        (topk.Rules("high", "lowest", "none"), "bf16", "zeros_60", 8193),
        (topk.Rules("high", "lowest", "none"), "bf16", "plateau_in_a_bin", 20001),
        (topk.Rules("none", "drop", "none"), "bf16", "fewer_numbers_than_k", 8193),
        (topk.Rules("none", "lowest", "index"), "f32", "normal", 20001),
    )
    return [
        Case(kernel, scores, length, 512, mode="packed", head=1, page_bits=4, start=3, rules=rules, score_dtype=dtype)
        for rules, dtype, scores, length in chosen
    ]


def build_problem(case: Case, count: int = _ROWS, tail_columns: int = _TAIL_COLUMNS) -> Problem:
    """Tensors for a case; the same for the same case.

    Args:
        count: rows, one or two; the second is a third as long.
        tail_columns: between a row's end and that of the tensor.
    """
    windowed = case.mode in WINDOWED
    first = (case.start or 0) if windowed else 0
    starts = (first, first + 2 if windowed and case.start else first)[:count]
    lengths = (case.length, case.length // 3)[:count]
    width = max(starts) + case.length + tail_columns
    scores = poisoned((count, width), _DTYPES[case.score_dtype], row_padding=-width % 4 + 1, offset=case.head).tensor
    scores.fill_(TAILS[case.tail])
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        scores[row, start : start + length] = make_scores(case.scores, length, case.k, case.length + row)
    seq_lens = torch.full((count, case.seq_stride), _UNWRITTEN, dtype=torch.int32)[:, 0]
    seq_lens.copy_(torch.tensor(lengths))
    rows = Rows(
        scores,
        seq_lens,
        case.mode,
        page_table=_page_table(case, width - max(starts), count) if case.mode in PAGED else None,
        page_bits=case.page_bits if case.mode in PAGED else 0,
        row_starts=_words(starts) if windowed and case.start is not None else None,
        out_offsets=_words(_OFFSETS[:count]) if case.mode == "ragged" else None,
        row_to_batch=_words(_ROW_TO_BATCH[:count]) if case.mode == "packed" and case.mapped else None,
    )
    raw = _output(case.k, count) if case.mode == "dual" else None
    return Problem(case, rows, _output(case.k, count), raw, bits_of(scores))


@dataclass(frozen=True)
class Call:
    """A case as a call of the op `select`; see `dsv4gen.reference.case`."""

    case: Case
    problem: Problem

    op = "select"

    @property
    def name(self) -> str:
        """The case in words."""
        return str(self.case)

    @property
    def options(self) -> Mapping[str, str]:
        """The mode and the rules."""
        return self.case.options

    @property
    def arguments(self) -> Mapping[str, object]:
        """Tensors and numbers as a caller passes them."""
        values = self.problem.values()
        tensors = [name for name in (*_INPUTS, "out", "raw_out") if not isinstance(values[name], int)]
        return {name: values[name] for name in (*tensors, "k", *_NUMBERS.get(self.case.mode, ()))}

    @property
    def rows(self) -> Sequence[Mapping[str, int]]:
        """Length and alignment of each row, as the kernels compute them."""
        rows, size = self.problem.rows, self.problem.scores.element_size()
        heads = ((rows.scores[row].data_ptr() // size + rows.start(row)) % 4 for row in range(len(rows)))
        return [{"seq_len": rows.length(row), "head": head} for row, head in enumerate(heads)]

    def fresh(self) -> Call:
        """The same call with poisoned outputs."""
        rows = len(self.problem.rows)
        raw = None if self.problem.raw_out is None else _output(self.case.k, rows)
        return Call(self.case, replace(self.problem, out=_output(self.case.k, rows), raw_out=raw))

    def check(self) -> None:
        """Judge what was written.

        Raises:
            VerifyError: the first thing that is wrong.
        """
        self.problem.check()


def shape_case(op: str, shape: Mapping[str, int], options: Mapping[str, str], order: str = "ascending") -> Call:
    """One row of exactly this width, with normal scores unless `scores` says otherwise; it stands for all of a batch.

    Args:
        order: of blocks and waves, for the case's name.

    Raises:
        ArgumentError: an op, size or option that top-k does not have, or an empty batch.
    """
    sizes, choices = {"batch", "width", "k", "page_bits"}, {"mode", "scores", "score_dtype", *topk.CHOICES}
    unknown = [*(name for name in shape if name not in sizes), *(name for name in options if name not in choices)]
    if unknown or op != "select":
        remedy = f"sizes: {', '.join(sorted(sizes))}; options: {', '.join(sorted(choices))}"
        raise ArgumentError(f"no size or option {unknown[0] if unknown else op!r}", remedy=remedy)
    scores = options.get("scores", "normal")
    if scores not in SCORES:
        raise ArgumentError(f"no scores {scores!r}{did_you_mean(scores, SCORES)}", remedy=f"one of {', '.join(SCORES)}")
    if shape.get("batch", 1) < 1:
        raise ArgumentError("batch=0 launches nothing", remedy="give batch=1 or more")
    case = Case(
        "select",
        scores,
        shape.get("width", 8192),
        shape.get("k", 512),
        mode=options.get("mode", "page_table"),
        page_bits=shape.get("page_bits", 6),
        order=order,
        score_dtype=options.get("score_dtype", "f32"),
        rules=topk.Rules(**{name: choice for name, choice in options.items() if name in topk.CHOICES}),
    )
    return Call(case, build_problem(case, count=1, tail_columns=0))


def verification_cases(*, full: bool) -> Iterator[Call]:
    """Calls for `verify`: the covering design, or every (scores, length, k)."""
    cases = full_cases(["select"]) if full else covering_cases(["select"])
    long_rows = (Case("select", "normal", length, 2048, mode=mode) for length in LONG_LENGTHS for mode in MODES)
    options = option_cases(["select"]) if full else few_option_cases("select")
    return (Call(case, build_problem(case)) for case in chain(long_rows, cases, options))


def _case(row: Row) -> Case:
    k = int(row["k"])
    return Case(
        kernel=row["kernel"],
        scores=row["scores"],
        length=_length(row["length"], k),
        k=k,
        mode=row["mode"],
        tail=row["tail"],
        head=int(row["head"]),
        seq_stride=int(row["seq_stride"]),
        page_bits=int(row["page_bits"]),
        start=None if row["start"] == "none" else int(row["start"]),
        mapped=row["mapped"] == "yes",
        order=row["order"],
    )


def _length(text: str, k: int) -> int:
    """`k`, `k-1` and `k+1` in numbers; other texts are numbers."""
    return k + int(text[1:] or 0) if text.startswith("k") else int(text)


def _page_table(case: Case, columns: int, rows: int) -> Tensor:
    """Distinct pages in random order, rows padded with garbage."""
    generator = torch.Generator().manual_seed(case.length * 31 + case.k)
    count = _TABLES if case.mode == "packed" else rows
    pages = -(-columns // (1 << case.page_bits))
    table = torch.full((count, pages + _GUARD), _UNWRITTEN, dtype=torch.int32)
    for row in range(count):
        table[row, :pages] = torch.randperm(2 * pages, generator=generator)[:pages].to(torch.int32)
    return table[:, :pages]


def _words(values: Sequence[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def _output(k: int, rows: int) -> Poisoned:
    return poisoned((rows, k), torch.int32, row_padding=_GUARD)
