// Branches, calls, barriers and the end. immediate = target, as an index into the launch's ops.
#pragma once
#include "values.h"

ALWAYS_INLINE void jump(Wave& w, const Op& o) { w.next = w.launch->ops + o.immediate; }
ALWAYS_INLINE u64 vcc_of(const Wave& w) { return w.lanes == 64 ? read_u64(&w.s[kVcc]) : w.s[kVcc]; }

inline void no_operation(Wave&, const Op&) {}
inline void branch(Wave& w, const Op& o) { jump(w, o); }
inline void branch_scc0(Wave& w, const Op& o) { if (!w.s[kScc]) jump(w, o); }
inline void branch_scc1(Wave& w, const Op& o) { if (w.s[kScc]) jump(w, o); }
inline void branch_vccz(Wave& w, const Op& o) { if (!vcc_of(w)) jump(w, o); }
inline void branch_vccnz(Wave& w, const Op& o) { if (vcc_of(w)) jump(w, o); }
inline void branch_execz(Wave& w, const Op& o) { if (!exec_of(w)) jump(w, o); }
inline void branch_execnz(Wave& w, const Op& o) { if (exec_of(w)) jump(w, o); }

// a = target address; with immediate2, d gets the address of the next instruction (immediate).
inline void jump_to_address(Wave& w, const Op& o) {
  const Launch& launch = *w.launch;
  const u64 target = read_u64(dwords(w, o.a)), offset = target - launch.code_base;
  if (o.immediate2) write_u64(dwords(w, o.d), static_cast<u64>(o.immediate));
  const i32 entry = offset / 4 < launch.entry_count && offset % 4 == 0 ? launch.entries[offset / 4] : -1;
  if (entry < 0) return trap(w, o, kBadJump, 0, target, 0);
  w.next = launch.ops + entry;
}

inline void barrier(Wave& w, const Op& o) {
  w.stop = kAtBarrier;
  w.barrier = &o;
}
inline void end_program(Wave& w, const Op& o) {
  w.stop = kEnded;
  w.end_instruction = o.instruction;
}
inline void trap_instruction(Wave& w, const Op& o) { trap(w, o, kTrapInstruction, 0, static_cast<u64>(o.immediate), 0); }
// Writes a field of the mode register: immediate = first bit | width << 8. Bit 23 (fp16 overflow clamps) is honoured;
// rounding (bits 0..3) other than to nearest even would give wrong results, so it traps.
inline void set_mode(Wave& w, const Op& o) {
  const u32 first = o.immediate & 255, width = o.immediate >> 8 & 255;
  const u32 field = *dwords(w, o.a) & (width >= 32 ? ~0u : (1u << width) - 1);
  if (first < 4 && field << first & 15) return trap(w, o, kRoundingMode, 0, field, 0);
  if (first <= 23 && 23 < first + width) w.fp16_overflow = field >> (23 - first) & 1;
}
