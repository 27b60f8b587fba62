"""Instructions and lowering steps that one runtime function carries out: name -> C++ function.

Names starting with `.` are steps that operand modifiers, addresses and lane moves are lowered to.
"""

from __future__ import annotations

LANE_STEPS = {
    ".broadcast": "broadcast<1>",
    ".broadcast2": "broadcast<2>",
    ".exec_written": "exec_written",
    ".exec_from_mask": "exec_from_mask",
    ".exec_restore": "exec_restore",
    ".modify_f32": "modify_f32",
    ".modify_f16": "modify_f16",
    ".modify_f64": "modify_f64",
    ".high_half": "high_half",
    ".select_field": "select_field",
    ".insert_field": "insert_field",
    ".copy_row": "copy_row",
    ".finish_f32": "finish_f32",
    ".finish_f16": "finish_f16",
    ".finish_f64": "finish_f64",
    ".finish_f16x2": "finish_f16x2",
    ".finish_f32x2": "finish_f32x2",
    ".arrange_halves": "arrange_halves",
    ".arrange_rows": "arrange_rows",
    ".widen_half": "widen_half",
    ".dpp_begin": "dpp_begin",
    ".dpp_move": "dpp_move",
    ".gather": "lane_gather",
    ".scatter": "lane_scatter",
    ".swizzle": "lane_swizzle",
    ".permute_row": "lane_permute_row",
    ".permute_row_by": "lane_permute_row_by",
    ".swap_halves": "lane_swap_halves",
    ".exchange": "lane_exchange",
    ".swap_rows": "swap_rows",
    ".pair_rows": "pair_rows",
    ".move_relative": "move_relative",
    ".read_first_lane": "read_first_lane",
    ".read_lane": "read_lane",
    ".write_lane": "write_lane",
}

CONTROL_STEPS = {
    ".nothing": "no_operation",
    ".barrier": "barrier",
    ".end": "end_program",
    ".trap": "trap_instruction",
    ".jump_to_address": "jump_to_address",
    ".set_mode": "set_mode",
    "s_branch": "branch",
    "s_cbranch_scc0": "branch_scc0",
    "s_cbranch_scc1": "branch_scc1",
    "s_cbranch_vccz": "branch_vccz",
    "s_cbranch_vccnz": "branch_vccnz",
    "s_cbranch_execz": "branch_execz",
    "s_cbranch_execnz": "branch_execnz",
}
