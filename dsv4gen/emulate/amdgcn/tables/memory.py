"""Memory instructions. A name such as `global_load_dwordx2` or `flat_atomic_add_u32` is a space, an operation and a
type; this module knows the operations and types, in the spellings of all generations."""

from __future__ import annotations

#: type in a load's or store's name -> (bytes, how it is extended, which half of the register)
PARTS = {
    "ubyte": (1, "zero", "whole"),
    "u8": (1, "zero", "whole"),
    "sbyte": (1, "sign", "whole"),
    "i8": (1, "sign", "whole"),
    "ushort": (2, "zero", "whole"),
    "u16": (2, "zero", "whole"),
    "sshort": (2, "sign", "whole"),
    "i16": (2, "sign", "whole"),
    "byte": (1, "zero", "whole"),
    "b8": (1, "zero", "whole"),
    "short": (2, "zero", "whole"),
    "b16": (2, "zero", "whole"),
    "ubyte_d16": (1, "zero", "low"),
    "d16_u8": (1, "zero", "low"),
    "u8_d16": (1, "zero", "low"),
    "ubyte_d16_hi": (1, "zero", "high"),
    "d16_hi_u8": (1, "zero", "high"),
    "u8_d16_hi": (1, "zero", "high"),
    "sbyte_d16": (1, "sign", "low"),
    "d16_i8": (1, "sign", "low"),
    "i8_d16": (1, "sign", "low"),
    "sbyte_d16_hi": (1, "sign", "high"),
    "d16_hi_i8": (1, "sign", "high"),
    "i8_d16_hi": (1, "sign", "high"),
    "short_d16": (2, "zero", "low"),
    "d16_b16": (2, "zero", "low"),
    "u16_d16": (2, "zero", "low"),
    "short_d16_hi": (2, "zero", "high"),
    "d16_hi_b16": (2, "zero", "high"),
    "u16_d16_hi": (2, "zero", "high"),
    "byte_d16_hi": (1, "zero", "high"),
    "d16_hi_b8": (1, "zero", "high"),
    "b8_d16_hi": (1, "zero", "high"),
    "b16_d16_hi": (2, "zero", "high"),
}
#: whole dwords -> their number
DWORDS = {
    "dword": 1,
    "b32": 1,
    "dwordx2": 2,
    "b64": 2,
    "dwordx3": 3,
    "b96": 3,
    "dwordx4": 4,
    "b128": 4,
}

#: atomic operation and type -> new value from the old one, the data and the second data; (type, expression)
ATOMICS: dict[str, tuple[str, str]] = {}
for _suffix, _type, _signed, _float in (("32", "u32", "i32", "f32"), ("64", "u64", "i64", "f64")):
    _from = f"{_float}_from"
    ATOMICS |= {
        f"add_u{_suffix}": (_type, "old + data"),
        f"sub_u{_suffix}": (_type, "old - data"),
        f"rsub_u{_suffix}": (_type, "data - old"),
        f"and_b{_suffix}": (_type, "old & data"),
        f"or_b{_suffix}": (_type, "old | data"),
        f"xor_b{_suffix}": (_type, "old ^ data"),
        f"swap_b{_suffix}": (_type, "data"),
        f"cmpswap_b{_suffix}": (_type, "old == other ? data : old"),
        f"mskor_b{_suffix}": (_type, "(old & ~data) | other"),
        f"min_u{_suffix}": (_type, "minimum(old, data)"),
        f"max_u{_suffix}": (_type, "maximum(old, data)"),
        f"min_i{_suffix}": (_type, f"minimum(static_cast<{_signed}>(old), static_cast<{_signed}>(data))"),
        f"max_i{_suffix}": (_type, f"maximum(static_cast<{_signed}>(old), static_cast<{_signed}>(data))"),
        f"inc_u{_suffix}": (_type, "old >= data ? 0 : old + 1"),
        f"dec_u{_suffix}": (_type, "old == 0 || old > data ? data : old - 1"),
        f"add_f{_suffix}": (_type, f"bits_of({_from}(old) + {_from}(data))"),
        f"min_f{_suffix}": (_type, f"bits_of(min_number({_from}(old), {_from}(data)))"),
        f"max_f{_suffix}": (_type, f"bits_of(max_number({_from}(old), {_from}(data)))"),
        f"cmpswap_f{_suffix}": (_type, f"{_from}(old) == {_from}(other) ? data : old"),
    }
ATOMICS |= {
    "pk_add_f16": ("u32", "add_pair_f16(old, data)"),
    "pk_add_bf16": ("u32", "add_pair_bf16(old, data)"),
    "cond_sub_u32": ("u32", "old >= data ? old - data : old"),
    "sub_clamp_u32": ("u32", "old >= data ? old - data : 0"),
}

#: gfx9's names of global, flat and buffer atomics -> ours
GFX9_ATOMICS = {
    "add": "add_u32",
    "sub": "sub_u32",
    "and": "and_b32",
    "or": "or_b32",
    "xor": "xor_b32",
    "swap": "swap_b32",
    "cmpswap": "cmpswap_b32",
    "smin": "min_i32",
    "smax": "max_i32",
    "umin": "min_u32",
    "umax": "max_u32",
    "inc": "inc_u32",
    "dec": "dec_u32",
}
GFX9_ATOMICS |= {f"{name}_x2": ours[:-2] + "64" for name, ours in list(GFX9_ATOMICS.items())}
GFX9_ATOMICS |= {"csub_u32": "sub_clamp_u32", "csub": "sub_clamp_u32"}

MEMORY_STEPS = {
    ".address_global": "address_global",
    ".address_scalar_base": "address_scalar_base",
    ".address_scratch": "address_scratch",
    ".address_buffer": "address_buffer",
    **{f".load_x{n}": f"load_dwords<{n}>" for n in (1, 2, 3, 4)},
    **{f".store_x{n}": f"store_dwords<{n}>" for n in (1, 2, 3, 4)},
    **{f".scalar_load_x{n}": f"scalar_load<{n}>" for n in (1, 2, 3, 4, 8, 16)},
    **{f".scalar_buffer_load_x{n}": f"scalar_buffer_load<{n}>" for n in (1, 2, 3, 4, 8, 16)},
    ".scalar_load_u8": "scalar_load_part<1, Extend::zero>",
    ".scalar_load_i8": "scalar_load_part<1, Extend::sign>",
    ".scalar_load_u16": "scalar_load_part<2, Extend::zero>",
    ".scalar_load_i16": "scalar_load_part<2, Extend::sign>",
}
LDS_STEPS = {
    **{f".lds_load_x{n}": f"lds_load<{n}>" for n in (1, 2, 3, 4)},
    **{f".lds_store_x{n}": f"lds_store<{n}>" for n in (1, 2, 3, 4)},
    **{f".lds_load_two_x{n}": f"lds_load_two<{n}>" for n in (1, 2)},
    **{f".lds_store_two_x{n}": f"lds_store_two<{n}>" for n in (1, 2)},
}
LDS_STEPS |= {f".lds_load_transposed_b{bits}": f"lds_load_transposed<{bits}>" for bits in (4, 6, 8, 16)}
LDS_STEPS |= {f".load_into_lds_{size}": f"load_into_lds<{size}>" for size in (1, 2, 4, 12, 16)}
for _bytes, _extend, _half in sorted(set(PARTS.values())):
    _how = f"{_bytes}_{_extend}_{_half}"
    MEMORY_STEPS[f".load_{_how}"] = f"load_part<{_bytes}, Extend::{_extend}, Half::{_half}>"
    LDS_STEPS[f".lds_load_{_how}"] = f"lds_load_part<{_bytes}, Extend::{_extend}, Half::{_half}>"
    if _extend == "zero" and _half != "low":
        MEMORY_STEPS[f".store_{_how}"] = f"store_part<{_bytes}, Half::{_half}>"
        LDS_STEPS[f".lds_store_{_how}"] = f"lds_store_part<{_bytes}, Half::{_half}>"
for _name, (_type, _expression) in ATOMICS.items():
    _change = (
        f"[]({_type} old, {_type} data, {_type} other) -> {_type} "
        f"{{ (void)old; (void)data; (void)other; return {_expression}; }}"
    )
    MEMORY_STEPS[f".atomic_{_name}"] = f"[](Wave& w, const Op& o) {{ update_memory<{_type}>(w, o, {_change}); }}"
    LDS_STEPS[f".lds_atomic_{_name}"] = f"[](Wave& w, const Op& o) {{ update_lds<{_type}>(w, o, {_change}); }}"
