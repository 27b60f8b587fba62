// Fibers: a stack and a place to go on. x86-64 switches in ten instructions; other processors use ucontext.
#pragma once

#include "protocol.h"

#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)

struct Fiber {
  void* stack_pointer;
};

extern "C" void simt_fiber_switch(void** save, void* load);

asm(R"(
.text
.type simt_fiber_switch, @function
simt_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_fiber_switch, .-simt_fiber_switch
)");

inline void fiber_start(Fiber& fiber, char* stack, u64 bytes, void (*entry)()) {
  void** top = reinterpret_cast<void**>(stack + bytes);
  *--top = nullptr;  // the return address that entry must never use; it also gives the stack a call's alignment
  *--top = reinterpret_cast<void*>(entry);
  for (int saved_register = 0; saved_register < 6; ++saved_register) *--top = nullptr;
  fiber.stack_pointer = top;
}

inline void fiber_switch(Fiber& from, Fiber& to) { simt_fiber_switch(&from.stack_pointer, to.stack_pointer); }

#else

#include <ucontext.h>

struct Fiber {
  ucontext_t context;
};

inline void fiber_start(Fiber& fiber, char* stack, u64 bytes, void (*entry)()) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = stack;
  fiber.context.uc_stack.ss_size = bytes;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, entry, 0);
}

inline void fiber_switch(Fiber& from, Fiber& to) { swapcontext(&from.context, &to.context); }

#endif
