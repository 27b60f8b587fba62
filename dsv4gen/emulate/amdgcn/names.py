"""One name per instruction: encoding suffixes removed, RDNA spellings turned into the CDNA ones of the tables."""

from __future__ import annotations

import functools
import re

_ENCODING = re.compile(r"_(?:e32|e64_dpp|e64|dpp8|dpp|sdwa|w32|w64)$")

_PATTERNS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^v_dual_", "v_"),
        (r"^ds_load_2addr_stride64_", "ds_read2st64_"),
        (r"^ds_load_2addr_", "ds_read2_"),
        (r"^ds_store_2addr_stride64_", "ds_write2st64_"),
        (r"^ds_store_2addr_", "ds_write2_"),
        (r"^ds_load_", "ds_read_"),
        (r"^ds_storexchg_2addr_stride64_", "ds_wrxchg2st64_"),
        (r"^ds_storexchg_2addr_", "ds_wrxchg2_"),
        (r"^ds_storexchg_", "ds_wrxchg_"),
        (r"^ds_store_", "ds_write_"),
        (r"_(add|sub|subrev)_nc_(u16|u32|i16|i32)$", r"_\1_\2"),
        (r"^v_(add|sub|subrev)_co_ci_u32$", r"v_\1c_co_u32"),
        (r"(max|min|max3|min3|med3|minmax|maxmin)_num_", r"\1_"),
        (r"^s_(and|or)_not1_", r"s_\1n2_"),
        (r"^s_(and|or)_not0_", r"s_\1n1_"),
        (r"^s_(add|sub)_co_([iu])32$", r"s_\1_\g<2>32"),
        (r"^s_(\w+)_(saveexec|wrexec)_b(?:32|64)$", r"s_\1_\2"),
    )
]
_WORDS = {
    "v_subc_co_u32": "v_subb_co_u32",
    "v_subrevc_co_u32": "v_subbrev_co_u32",
    "v_clz_i32_u32": "v_ffbh_u32",
    "v_cls_i32": "v_ffbh_i32",
    "v_ctz_i32_b32": "v_ffbl_b32",
    "v_mad_co_u64_u32": "v_mad_u64_u32",
    "v_mad_co_i64_i32": "v_mad_i64_i32",
    "v_cvt_floor_i32_f32": "v_cvt_flr_i32_f32",
    "v_cvt_nearest_i32_f32": "v_cvt_rpi_i32_f32",
    "v_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32",
    "v_cvt_pk_norm_i16_f32": "v_cvt_pknorm_i16_f32",
    "v_cvt_pk_norm_u16_f32": "v_cvt_pknorm_u16_f32",
    "v_cvt_pk_norm_i16_f16": "v_cvt_pknorm_i16_f16",
    "v_cvt_pk_norm_u16_f16": "v_cvt_pknorm_u16_f16",
    "v_mad_legacy_f16": "v_mad_f16",
    "v_mad_legacy_i16": "v_mad_i16",
    "v_mad_legacy_u16": "v_mad_u16",
    "v_fma_legacy_f16": "v_fma_f16",
    "v_div_fixup_legacy_f16": "v_div_fixup_f16",
    "v_mul_dx9_zero_f32": "v_mul_legacy_f32",
    "v_fma_dx9_zero_f32": "v_fma_legacy_f32",
    "v_fmac_dx9_zero_f32": "v_fmac_legacy_f32",
    "v_dot2acc_f32_f16": "v_dot2c_f32_f16",
    "v_dot2acc_f32_bf16": "v_dot2c_f32_bf16",
    "v_mad_mix_f32": "v_fma_mix_f32",
    "v_mad_mixlo_f16": "v_fma_mixlo_f16",
    "v_mad_mixhi_f16": "v_fma_mixhi_f16",
    "s_add_co_ci_u32": "s_addc_u32",
    "s_sub_co_ci_u32": "s_subb_u32",
    "s_addk_co_i32": "s_addk_i32",
    "s_ctz_i32_b32": "s_ff1_i32_b32",
    "s_ctz_i32_b64": "s_ff1_i32_b64",
    "s_clz_i32_u32": "s_flbit_i32_b32",
    "s_clz_i32_u64": "s_flbit_i32_b64",
    "s_cls_i32": "s_flbit_i32",
    "s_cls_i32_i64": "s_flbit_i32_i64",
}


@functools.lru_cache(maxsize=4096)
def canonical(mnemonic: str) -> str:
    """The name the tables use, e.g. `v_add_nc_u32_e32` and `v_dual_add_nc_u32` give `v_add_u32`."""
    name = _ENCODING.sub("", mnemonic)
    for pattern, replacement in _PATTERNS:
        name = pattern.sub(replacement, name)
    return _WORDS.get(name, name)


def encoding(mnemonic: str) -> str:
    """The encoding suffix: `dpp`, `sdwa`, `e32`, ... or an empty text."""
    match = _ENCODING.search(mnemonic)
    if match is None:
        return ""
    return "dpp" if "dpp" in match[0] else match[0][1:]
