"""A call of the qk_norm_rope family and its judge: inputs by a description, outputs in poisoned memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.compare import check_untouched
from dsv4gen.reference.compress_store import TIE, TIE_OF_ROW, check_stored, page_bytes, quantizer
from dsv4gen.reference.hazards import Poisoned, poisoned
from dsv4gen.reference.qk_norm_rope import KEY_DIM, RotaryTable, keys, query_heads, rms_norm, rotary_table

#: arguments that name compile-time options
OPTIONS = ("q_norm", "table", "record", "dialect", "fp8_max", "floor", "quant_source", "slot_zero")
#: option -> the argument whose element type it is
_TYPED = {
    "dtype": ("q", "kv"),
    "partial_dtype": ("partials",),
    "weight_dtype": ("k_weight", "kv_weight", "q_weight"),
    "table_dtype": ("cosines",),
    "position_dtype": ("positions",),
    "slot_dtype": ("slots",),
}
_NAMES = {
    torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16", torch.int32: "i32", torch.int64: "i64",
}  # fmt: skip
Arguments = dict[str, object]


@dataclass(frozen=True)
class Setting:
    """What a call is made of; everything else follows from `seed`.

    Attributes:
        heads: query heads; none leaves the queries out of the call that can do without.
        splits: partial projections instead of queries.
        weighted: whether queries have a weight.
        in_place: outputs are the inputs.
        padding: elements between neighbouring heads and keys, and bytes between pages are the engines'.
        offset: elements by which heads and keys start past an aligned address.
        positions, slots: per token; counting up where they are absent.
        locations: entries of `slots`; one per token where it is absent.
        scale: of the inputs, by token; powers that reach from tiny to large where it is absent.
        special: values that are put into some heads and keys.
    """

    op: str
    tokens: int = 3
    heads: int = 5
    key_heads: int = 1
    head_dim: int = KEY_DIM
    splits: int = 0
    weighted: bool = False
    in_place: bool = False
    kv_out: bool = False
    padding: int = 0
    offset: int = 0
    positions: tuple[int, ...] = ()
    slots: tuple[int, ...] = ()
    locations: int | None = None
    page_size: int = 3
    special: tuple[float, ...] = ()
    q_eps: float = 1e-6
    kv_eps: float = 1e-6
    options: tuple[tuple[str, str], ...] = ()
    dtype: torch.dtype = torch.bfloat16
    partial_dtype: torch.dtype = torch.float32
    weight_dtype: torch.dtype = torch.float32
    table_dtype: torch.dtype = torch.float32
    position_dtype: torch.dtype = torch.int64
    slot_dtype: torch.dtype = torch.int32
    seed: int = 0

    def option(self, name: str, default: str) -> str:
        """A chosen option."""
        return dict(self.options).get(name, default)


@dataclass(frozen=True)
class Case:
    """One call: `arguments` are the keywords of the launch function `op`, outputs included."""

    name: str
    op: str
    setting: Setting = field(repr=False)
    arguments: Mapping[str, object] = field(repr=False)
    judges: tuple[Callable[[], None], ...] = field(repr=False)
    #: no kernel of this family branches on rows
    rows: tuple[Mapping[str, int], ...] = ()

    @property
    def options(self) -> Mapping[str, str]:
        """Compile-time options among the arguments, element types included."""
        chosen = {name: str(self.arguments[name]) for name in OPTIONS if name in self.arguments}
        for option, names in _TYPED.items():
            for name in names:
                tensor = self.arguments.get(name)
                if isinstance(tensor, Tensor):
                    chosen[option] = _NAMES[tensor.dtype]
        return chosen

    def fresh(self) -> Case:
        """The same call with inputs and outputs as they were before it."""
        return build_case(self.name, self.setting)

    def check(self) -> None:
        """Compare the outputs with the reference; what the call must not write is as it was.

        Raises:
            VerifyError: the first difference found.
        """
        for judge in self.judges:
            judge()


def build_case(name: str, setting: Setting) -> Case:
    """The call that a setting describes."""
    builder = _Builder(name, setting)
    {
        "qk_norm": builder.norm,
        "q_norm_rope": builder.queries,
        "k_norm_rope_store": builder.keys,
        "qk_norm_rope_store": builder.both,
    }[setting.op]()
    return Case(name, setting.op, setting, builder.arguments, tuple(builder.judges))


class _Builder:
    """Collects the arguments of one call and what judges it."""

    def __init__(self, name: str, setting: Setting) -> None:
        self.name, self.setting = name, setting
        self.generator: Generator = torch.Generator().manual_seed(setting.seed)
        self.arguments: Arguments = dict(setting.options)
        self.judges: list[Callable[[], None]] = []

    def norm(self) -> None:
        setting = self.setting
        for prefix, count, weighted in (("q", setting.heads, setting.weighted), ("k", setting.key_heads, True)):
            heads = self.placed(self.values(setting.tokens, count, setting.head_dim))
            weight = self.weight(setting.head_dim) if weighted else None
            self.arguments |= {prefix: heads.tensor, f"{prefix}_weight": weight}
            self.output(f"{prefix}_out", heads, rms_norm(heads.tensor, weight, setting.q_eps), prefix)
        self.arguments["eps"] = setting.q_eps

    def queries(self) -> None:
        table, positions = self.rotation()
        self.add_queries(table, positions)
        self.arguments["eps"] = self.setting.q_eps

    def keys(self) -> None:
        self.add_keys(*self.rotation())
        self.arguments["eps"] = self.setting.kv_eps

    def both(self) -> None:
        table, positions = self.rotation()
        self.add_keys(table, positions)
        if self.setting.heads:
            self.add_queries(table, positions)
        self.arguments |= {"q_eps": self.setting.q_eps, "kv_eps": self.setting.kv_eps}

    def rotation(self) -> tuple[RotaryTable, Tensor]:
        """The table of 40 positions and the tokens' positions."""
        setting = self.setting
        angles = torch.rand(40, 32, generator=self.generator) * 6.28
        table = rotary_table(angles, setting.option("table", "interleaved"), setting.table_dtype)
        positions = torch.tensor(setting.positions or [7 + 5 * n for n in range(setting.tokens)])
        positions = positions[: setting.tokens].to(setting.position_dtype)
        self.arguments |= {"cosines": table.cosines, "positions": positions}
        if table.sines is not None:
            self.arguments["sines"] = table.sines
        return table, positions

    def add_queries(self, table: RotaryTable, positions: Tensor) -> None:
        setting = self.setting
        weight = self.weight(setting.head_dim) if setting.weighted else None
        if weight is not None:
            self.arguments["q_weight"] = weight
        if setting.splits:
            shape = (setting.splits, setting.tokens, setting.heads, setting.head_dim)
            parts = self.placed(self.values(*shape), dtype=setting.partial_dtype)
            self.arguments["partials"] = parts.tensor
            heads, source = parts.tensor.double().sum(0), parts
        else:
            source = self.placed(self.values(setting.tokens, setting.heads, setting.head_dim))
            self.arguments["q"] = source.tensor
            heads = source.tensor
        eps = setting.q_eps if setting.option("q_norm", "on") == "on" else None
        self.output("q_out", source, query_heads(heads, positions, table, eps=eps, weight=weight), "q")

    def add_keys(self, table: RotaryTable, positions: Tensor) -> None:
        setting = self.setting
        kv, weight = self.placed(self.values(setting.tokens, KEY_DIM)), self.weight(KEY_DIM)
        self.arguments |= {"kv": kv.tensor, "kv_weight": weight}
        rows = keys(kv.tensor, positions, table, eps=setting.kv_eps, weight=weight)
        if setting.kv_out:
            self.output("kv_out", kv, rows, "kv")
        else:
            self.unchanged(kv, "kv")
        self.add_cache(rows)

    def add_cache(self, rows: Tensor) -> None:
        setting = self.setting
        record, page_size = setting.option("record", "v4_584"), setting.page_size
        pages = setting.tokens // page_size + 3
        cache = poisoned((pages, page_bytes(record, KEY_DIM, page_size)), torch.uint8)
        slots = torch.tensor(setting.slots or [2 * n + 1 for n in range(setting.tokens)])
        known = setting.tokens if setting.locations is None else setting.locations
        stored = slots[:known].to(setting.slot_dtype)
        self.arguments |= {"cache": cache.tensor, "slots": stored, "page_size": page_size}
        before = cache.tensor.clone()
        wanted = torch.full((setting.tokens,), -1)
        wanted[: len(stored)] = stored[: setting.tokens].long()
        if setting.option("slot_zero", "ordinary") == "reserved":
            wanted[wanted == 0] = -1
        quant = quantizer(
            setting.option("dialect", "e4m3fn"), maximum=setting.option("fp8_max", "writer"),
            floor=setting.option("floor", "amax_1e4"), source=setting.option("quant_source", "f32"),
        )  # fmt: skip

        def judge() -> None:
            check_stored(cache.tensor, before, page_size, wanted, rows, record, quant, f"{self.name}: cache")
            cache.check_surroundings(f"{self.name}: cache")

        if setting.tokens:
            self.judges.append(judge)

    def output(self, name: str, source: Poisoned, expected: Tensor, source_name: str) -> None:
        """An output in memory of its own, or in its source's, and what it must hold."""
        if self.setting.in_place:
            home = source
        else:
            home = poisoned(
                expected.shape, self.setting.dtype, row_padding=self.setting.padding, offset=self.setting.offset
            )
            self.unchanged(source, source_name)
        self.arguments[name] = home.tensor

        def judge() -> None:
            check_rounded(home.tensor, expected, f"{self.name}: {name}")
            home.check_surroundings(f"{self.name}: {name}")

        self.judges.append(judge)

    def unchanged(self, source: Poisoned, name: str) -> None:
        """An input that nothing may write to."""
        before = source.raw.clone()
        self.judges.append(lambda: check_untouched(source.raw, before, name=f"{self.name}: {name}"))

    def values(self, *shape: int) -> Tensor:
        """Normal values, scaled by token from tiny to large, with special ones in some places."""
        values = torch.randn(shape, generator=self.generator)
        axis = 1 if len(shape) == 4 else 0
        powers = torch.tensor([1.0, 3e-4, 40.0, 1e-6])[torch.arange(shape[axis]) % 4]
        values *= powers.view([-1 if position == axis else 1 for position in range(len(shape))])
        for number, special in enumerate(self.setting.special):
            values[..., number % shape[-2], 11 * number] = special
        return values

    def placed(self, values: Tensor, dtype: torch.dtype | None = None) -> Poisoned:
        """Values in memory whose gaps and surroundings hold a pattern."""
        setting = self.setting
        home = poisoned(values.shape, dtype or setting.dtype, row_padding=setting.padding, offset=setting.offset)
        home.tensor.copy_(values)
        return home

    def weight(self, dim: int) -> Tensor:
        """A norm weight around 1, negative in places."""
        weight = 0.5 + torch.rand(dim, generator=self.generator)
        weight[::7] *= -1
        return weight.to(self.setting.weight_dtype)


def check_rounded(actual: Tensor, expected: Tensor, name: str) -> None:
    """Float64 `expected` rounded to the output's type once, by float32 arithmetic that may err near a tie.

    Raises:
        VerifyError: an element is not what such arithmetic gives.
    """
    finite = expected.nan_to_num(0, 0, 0).abs()
    slack = TIE * finite + TIE_OF_ROW * finite.amax(-1, keepdim=True)
    low, high = ((expected + sign * slack).float().to(actual.dtype).double() for sign in (-1, 1))
    values = actual.double()
    right = ((values >= low) & (values <= high)) | (torch.isnan(values) & torch.isnan(expected))
    if not bool(right.all()):
        first = tuple(int(place) for place in (~right).nonzero()[0])
        raise VerifyError(
            f"{name}: {int((~right).sum())} of {right.numel()} elements are wrong; first at {list(first)}: "
            f"{values[first].item()!r}, expected {expected[first].item()!r}"
        )
