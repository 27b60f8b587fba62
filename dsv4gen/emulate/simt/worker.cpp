// The worker process: `worker FILE_DESCRIPTOR PROGRAM`. It serves launches of the kernels in a shared library, one
// byte on stdin for each, one byte on stdout when it is done. Request, report and arrays live in the memory file of
// that descriptor. Programs take the simt_* functions from this executable, which exports them.
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "engine.h"

namespace {

Engine* engine = nullptr;
void* program = nullptr;
u32 wave = 0;
Control* control = nullptr;
char signal_stack[64 << 10];

bool is_write(const void* context) {
#if defined(__x86_64__)
  const int error_code = 19;  // index of the page fault's error code in the saved registers; bit 1 = write
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[error_code] & 2;
#else
  static_cast<void>(context);
  return false;
#endif
}

// Record where the kernel was, then die of the same signal so that the exit status names it.
void on_signal(int number, siginfo_t* info, void* context) {
  if (engine != nullptr && engine->current() != nullptr) {
    const u64 address = reinterpret_cast<u64>(info->si_addr);
    Finding& finding = engine->find(kSignal, engine->current(), engine->current()->line);
    finding.detail = static_cast<u64>(number);
    finding.detail2 = address;
    finding.other_thread = area_of(address);
    finding.other_line = is_write(context);
  }
  signal(number, SIG_DFL);
  raise(number);
}

void catch_signals() {
  stack_t alternate = {};
  alternate.ss_sp = signal_stack;
  alternate.ss_size = sizeof signal_stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  const int caught[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGTRAP};
  for (const int number : caught) sigaction(number, &action, nullptr);
}

void serve(int file) {
  static const Window window;
  Request& request = control->request;
  memset(&control->report, 0, sizeof control->report);
  Engine launch(wave, request, control->report);
  engine = &launch;
  const Kernel kernel = reinterpret_cast<Kernel>(dlsym(program, request.symbol));
  if (kernel == nullptr) {
    launch.find(kUnknownSymbol, nullptr, 0);
  } else if (!window.show(request, file)) {
    launch.find(kNoMemory, nullptr, 0);
  } else {
    launch.run(kernel);
  }
  window.hide(request);
  engine = nullptr;
}

// On a fiber: record what its kernel did wrong and leave it for good.
void report_and_stop(FindingKind kind, u32 line, u64 detail, u64 detail2) {
  Finding& finding = engine->find(kind, engine->current(), line);
  finding.detail = detail;
  finding.detail2 = detail2;
  engine->stop();
}

// Where `address` lies in the shared struct of the current block.
i64 shared_offset(const void* address, u32 bytes, u32 line) {
  const SharedSlot& own = engine->current_block().shared;
  const i64 offset = static_cast<const char*>(address) - own.base;
  if (own.base == nullptr || offset < 0 || offset + bytes > own.bytes)
    report_and_stop(kRemoteAddress, line, static_cast<u64>(offset), own.bytes);
  return offset;
}

// A block's barrier where the current block has that of `address`.
TransactionBarrier& barrier_at(Block& block, const void* address, u32 line) {
  engine->note_line(line);
  const i64 offset = shared_offset(address, sizeof(u64), line);
  TransactionBarrier* known = block.inbox.at(static_cast<u32>(offset));
  if (known == nullptr) report_and_stop(kUnknownTransaction, line, static_cast<u64>(offset), block.shared.bytes);
  return *known;
}

// Say why no launch can be served; the caller returns this as the exit status.
int complain(const char* reason) {
  return write(2, reason, strlen(reason)) < 0 ? 2 : 1;
}

int number_in(const char* text) {
  int number = 0;
  for (; *text != 0; ++text) number = number * 10 + (*text - '0');
  return number;
}

}  // namespace

extern "C" {

#define SITE reinterpret_cast<Site>(__builtin_return_address(0))

u64 simt_ballot(bool predicate, u32 line) { return engine->park(kVote, predicate, 0, line, SITE); }
u32 simt_shuffle(u32 value, u32 lane, u32 line) {
  return static_cast<u32>(engine->park(kShuffle, value, lane, line, SITE));
}
void simt_block_barrier(u32 line) { engine->park(kAtBlockBarrier, 0, 0, line, SITE); }
void simt_cluster_barrier(u32 line) { engine->park(kAtClusterBarrier, 0, 0, line, SITE); }

void* simt_shared(u32 bytes, u32 alignment, u32 line) {
  SharedSlot& shared = engine->current_block().shared;
  engine->note_line(line);
  if (shared.base != nullptr && shared.bytes == bytes) return shared.base;
  if (bytes > engine->shared_limit()) report_and_stop(kSharedLimit, line, bytes, engine->shared_limit());
  if (shared.base != nullptr) report_and_stop(kSharedTwice, line, bytes, shared.bytes);
  shared.declare(bytes, alignment);
  if (engine->counters().shared_bytes < bytes) engine->counters().shared_bytes = bytes;
  return shared.base;
}

const void* simt_aligned(const void* address, u32 alignment, u32 line) {
  const u64 number = reinterpret_cast<u64>(address);
  engine->note_line(line);
  if (number % alignment != 0) report_and_stop(kMisaligned, line, number, alignment);
  return address;
}

void simt_init_barrier(const void* barrier, u32 line) {
  engine->note_line(line);
  const u32 offset = static_cast<u32>(shared_offset(barrier, sizeof(u64), line));
  if (!engine->current_block().inbox.init(offset)) report_and_stop(kNoMemory, line, 0, 0);
}

void simt_expect(const void* barrier, u32 bytes, u32 line) {
  TransactionBarrier& known = barrier_at(engine->current_block(), barrier, line);
  if (known.expected) report_and_stop(kExpectedTwice, line, static_cast<u64>(known.due), 0);
  Inbox::expect(known, bytes);
}

void simt_await(const void* barrier, u32 phase, u32 line) {
  Block& block = engine->current_block();
  const TransactionBarrier* known = &barrier_at(block, barrier, line);
  const u32 offset = known->offset;
  for (; (known->phase & 1) == phase; known = block.inbox.at(offset)) engine->park(kAtTransaction, offset, phase, line, SITE);
}

void simt_push(const void* local, const void* value, u32 bytes, u32 rank, const void* barrier, u32 line) {
  engine->note_line(line);
  const SharedSlot& own = engine->current_block().shared;
  const u32 offset = static_cast<u32>(shared_offset(local, bytes, line));
  if (rank >= engine->cluster_blocks()) {
    report_and_stop(kRemoteRank, line, rank, engine->cluster_blocks());
  } else if (!engine->cluster_has_met()) {
    report_and_stop(kRemoteEarly, line, rank, 0);
  } else if (engine->has_ended(engine->block_of(rank))) {
    report_and_stop(kRemoteEnded, line, rank, 0);
  } else if (offset % bytes != 0) {
    report_and_stop(kMisaligned, line, offset, bytes);
  }
  Block& peer = engine->block_of(rank);
  if (peer.shared.base == nullptr) peer.shared.declare(own.bytes, own.alignment);
  TransactionBarrier& known = barrier_at(peer, barrier, line);
  Push push{known.offset, offset, bytes, {}};
  memcpy(push.words, value, bytes);
  const bool at_once = peer.inbox.is_full() || engine->comes_at_once();
  if (peer.inbox.is_full()) peer.inbox.deliver(known, peer.shared.base);
  if (peer.inbox.is_full()) report_and_stop(kNoMemory, line, 0, 0);
  peer.inbox.post(push);
  if (at_once) peer.inbox.deliver(known, peer.shared.base);
}

}  // extern "C"

int main(int count, char** arguments) {
  if (count != 3) return complain("usage: worker FILE_DESCRIPTOR PROGRAM");
  program = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
  const void* program_wave = program == nullptr ? nullptr : dlsym(program, "simt_wave");
  if (program_wave == nullptr) return complain(dlerror());
  wave = *static_cast<const u32*>(program_wave);
  const int file = number_in(arguments[1]);
  void* memory = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED || !Window().prepare()) return complain("its memory cannot be mapped");
  control = static_cast<Control*>(memory);
  catch_signals();
  const u32 greeting[3] = {wave, sizeof(Request), sizeof(Report)};
  if (write(1, greeting, sizeof greeting) != sizeof greeting) return 1;
  for (char byte; read(0, &byte, 1) == 1;) {
    serve(file);
    if (write(1, &byte, 1) != 1) return 1;
  }
  return 0;
}
