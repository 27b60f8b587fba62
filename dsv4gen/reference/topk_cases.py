"""The case matrix of top-k, shared by tests and `verify`: factors, designs, and tensors for a case.

A case is launched with two rows, the second a third as long and at another alignment. Columns past a row's
length are poisoned, outputs lie between guard words, and rows are further apart than their width.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.reference import topk
from dsv4gen.reference.covering import Row, covering_design
from dsv4gen.reference.hazards import Poisoned, poisoned
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
    "mode": topk.MODES,
    "tail": tuple(TAILS),
    "head": ("0", "1", "2", "3"),
    "seq_stride": ("1", "2"),
    "page_bits": ("0", "4", "8"),
    "order": ORDERS,
}
_ROWS = 2
_TAIL_COLUMNS = 5
_GUARD = 3
_UNWRITTEN = -559038737


@dataclass(frozen=True)
class Case:
    """One launch. `kernel` is the caller's name for what it runs; `head` counts the scores by which the first row
    starts off a 16-byte boundary; `order` is an emulator's thread order."""

    kernel: str
    scores: str
    length: int
    k: int
    mode: str = "indices"
    tail: str = "nan"
    head: int = 0
    seq_stride: int = 1
    page_bits: int = 0
    order: str = "ascending"

    def __str__(self) -> str:
        where = f"head {self.head}, seq_stride {self.seq_stride}, page_bits {self.page_bits}, {self.order}"
        return f"{self.kernel}: {self.scores}, length {self.length}, k {self.k}, {self.mode}, tail {self.tail}, {where}"


@dataclass(frozen=True)
class Problem:
    """A case's tensors, on the CPU.

    Attributes:
        scores: float32 [2, width], any row stride and alignment.
        seq_lens: int32 [2], strided.
        page_table: int32 [2, pages] naming distinct pages, or None in mode `indices`.
        out, raw_out: int32 [2, k] between guard words; raw_out in mode `dual` only.
    """

    case: Case
    scores: Tensor
    seq_lens: Tensor
    page_table: Tensor | None
    out: Poisoned
    raw_out: Poisoned | None
    scores_before: Tensor

    def values(self) -> dict[str, Tensor | int]:
        """Parameters of the kernels by name; a tensor that the mode lacks is 0."""
        table, raw = self.page_table, self.raw_out
        return {
            "scores": self.scores,
            "seq_lens": self.seq_lens,
            "page_table": 0 if table is None else table,
            "out": self.out.tensor,
            "raw_out": 0 if raw is None else raw.tensor,
            "score_stride": self.scores.stride(0),
            "seq_stride": self.seq_lens.stride(0),
            "table_stride": 0 if table is None else table.stride(0),
            "out_stride": self.out.tensor.stride(0),
            "raw_stride": 0 if raw is None else raw.tensor.stride(0),
            "width": self.scores.shape[1],
            "k": self.case.k,
            "pages": 0 if table is None else table.shape[1],
            "page_bits": self.case.page_bits,
        }

    def check(self) -> None:
        """Judge what a kernel wrote.

        Raises:
            VerifyError: a wrong selection, a changed score, or a word written outside of the outputs.
        """
        bits = self.scores.contiguous().view(torch.int32)
        if not torch.equal(bits, self.scores_before):
            raise VerifyError(f"{self.case}: scores were written")
        for name, output in (("out", self.out), ("raw_out", self.raw_out)):
            if output is not None:
                output.check_surroundings(f"{self.case}: {name}")
        selection = topk.Selection(self.out.tensor, None if self.raw_out is None else self.raw_out.tensor)
        try:
            topk.check_selection(
                selection,
                self.scores,
                self.seq_lens,
                mode=self.case.mode,
                page_table=self.page_table,
                page_bits=self.case.page_bits,
            )
        except VerifyError as error:
            raise VerifyError(f"{self.case}: {error.message}") from error


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


def build_problem(case: Case) -> Problem:
    """Tensors for a case; the same for the same case."""
    generator = torch.Generator().manual_seed(case.length * 31 + case.k)
    width = case.length + _TAIL_COLUMNS
    lengths = (case.length, case.length // 3)
    scores = poisoned((_ROWS, width), torch.float32, row_padding=-width % 4 + 1, offset=case.head).tensor
    scores.fill_(TAILS[case.tail])
    for row, length in enumerate(lengths):
        scores[row, :length] = make_scores(case.scores, length, case.k, case.length + row)
    seq_lens = torch.full((_ROWS, case.seq_stride), _UNWRITTEN, dtype=torch.int32)[:, 0]
    seq_lens.copy_(torch.tensor(lengths))
    table = None if case.mode == "indices" else _page_table(width, case.page_bits, generator)
    raw = _output(case.k) if case.mode == "dual" else None
    before = scores.contiguous().view(torch.int32).clone()
    return Problem(case, scores, seq_lens, table, _output(case.k), raw, before)


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
        """The mode."""
        return {"mode": self.case.mode}

    @property
    def arguments(self) -> Mapping[str, object]:
        """Tensors and numbers as a caller passes them."""
        names = ["scores", "seq_lens", "out", "k"]
        if self.case.mode != "indices":
            names += ["page_table", "page_bits"]
        if self.case.mode == "dual":
            names.append("raw_out")
        values = self.problem.values()
        return {name: values[name] for name in names}

    @property
    def rows(self) -> Sequence[Mapping[str, int]]:
        """Length and alignment of each row, as the kernels compute them."""
        table, scores = self.problem.page_table, self.problem.scores
        pages = None if table is None else table.shape[1]
        lengths = topk.valid_lengths(self.problem.seq_lens, scores.shape[1], pages=pages, page_bits=self.case.page_bits)
        heads = (scores[row].data_ptr() // scores.element_size() % 4 for row in range(_ROWS))
        return [{"seq_len": length, "head": head} for length, head in zip(lengths.tolist(), heads, strict=True)]

    def fresh(self) -> Call:
        """The same call with poisoned outputs."""
        raw = None if self.problem.raw_out is None else _output(self.case.k)
        return Call(self.case, replace(self.problem, out=_output(self.case.k), raw_out=raw))

    def check(self) -> None:
        """Judge what was written.

        Raises:
            VerifyError: the first thing that is wrong.
        """
        self.problem.check()


def shape_case(op: str, shape: Mapping[str, int], options: Mapping[str, str]) -> Call:
    """One call with normal scores: `batch` rows are run as two, the second a third as long.

    Raises:
        ArgumentError: an op, size or option that top-k does not have.
    """
    known = {"batch", "width", "k", "page_bits"}
    unknown = [name for name in (*shape, *options) if name not in known | {"mode", "scores", "order"}]
    if unknown or op != "select":
        what = unknown[0] if unknown else op
        raise ArgumentError(
            f"no size or option {what!r}", remedy=f"sizes: {', '.join(sorted(known))}; options: mode, scores"
        )
    case = Case(
        "select",
        options.get("scores", "normal"),
        shape.get("width", 8192),
        shape.get("k", 512),
        mode=options.get("mode", "page_table"),
        page_bits=shape.get("page_bits", 6),
    )
    return Call(case, build_problem(case))


def verification_cases(*, full: bool) -> Iterator[Call]:
    """Calls for `verify`: the covering design, or every (scores, length, k)."""
    cases = full_cases(["select"]) if full else covering_cases(["select"])
    long_rows = (Case("select", "normal", length, 2048, mode=mode) for length in LONG_LENGTHS for mode in topk.MODES)
    return (Call(case, build_problem(case)) for case in chain(long_rows, cases))


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
        order=row["order"],
    )


def _length(text: str, k: int) -> int:
    """`k`, `k-1` and `k+1` in numbers; other texts are numbers."""
    return k + int(text[1:] or 0) if text.startswith("k") else int(text)


def _page_table(width: int, page_bits: int, generator: torch.Generator) -> Tensor:
    """Distinct pages in random order, rows padded with garbage."""
    pages = -(-width // (1 << page_bits))
    table = torch.full((_ROWS, pages + _GUARD), _UNWRITTEN, dtype=torch.int32)
    for row in range(_ROWS):
        table[row, :pages] = torch.randperm(2 * pages, generator=generator)[:pages].to(torch.int32)
    return table[:, :pages]


def _output(k: int) -> Poisoned:
    return poisoned((_ROWS, k), torch.int32, row_padding=_GUARD)
