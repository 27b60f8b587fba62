// A stand-in for NVRTC and hipRTC: "machine code" is an ELF header and the source text. STUB_COMPILE_MS delays, and
// STUB_COMPILE_LOG names a file that gets one line per compile. A source with `#error` is refused. -DHIP: AMD's names.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HIP
#define NAME(x) hiprtc##x
#define CODE(x) hiprtcGetCode##x
#define MACHINE 224
#else
#define NAME(x) nvrtc##x
#define CODE(x) nvrtcGetCUBIN##x
#define MACHINE 190
#endif

typedef struct { char *source, *name, log[4096]; unsigned char* code; size_t size; } Program;

int NAME(Version)(int* major, int* minor) { return *major = 13, *minor = 5, 0; }
const char* NAME(GetErrorString)(int status) { return status == 5 ? "invalid option" : "compilation failed"; }
int NAME(CreateProgram)(Program** made, const char* source, const char* name, int headers, void* texts, void* names) {
  (void)headers, (void)texts, (void)names;
  *made = calloc(1, sizeof(Program));
  (*made)->source = strdup(source);
  (*made)->name = strdup(name);
  return 0;
}
int NAME(DestroyProgram)(Program** program) {
  free((*program)->source), free((*program)->name), free((*program)->code), free(*program);
  return 0;
}
static void note(const char* options) {
  const char* path = getenv("STUB_COMPILE_LOG");
  if (!path) return;
  int handle = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  char line[512];
  int size = snprintf(line, sizeof line, "%d %s\n", getpid(), options);
  if (write(handle, line, size) < 0) abort();
  close(handle);
}
int NAME(CompileProgram)(Program* program, int count, const char** options) {
  note(count ? options[0] : "");
  const char* delay = getenv("STUB_COMPILE_MS");
  if (delay) usleep(1000 * atoi(delay));
  for (int i = 0; i < count; ++i)
    if (strstr(options[i], "sm_77")) return 5;
  const char* bad = strstr(program->source, "#error");
  if (bad) {
    int line = 1;
    for (const char* p = program->source; p < bad; ++p) line += *p == '\n';
    snprintf(program->log, sizeof program->log, "%s(%d): error: #error directive: planted\n\n1 error detected.\n", program->name, line);
    return 6;
  }
  const char* forced = getenv("STUB_COMPILE_GARBAGE");
  program->size = 64 + strlen(program->source);
  program->code = calloc(1, program->size);
  if (!forced) memcpy(program->code, "\177ELF", 4);
  program->code[18] = MACHINE;
  memcpy(program->code + 64, program->source, strlen(program->source));
  return 0;
}
int NAME(GetProgramLogSize)(Program* program, size_t* size) { return *size = strlen(program->log) + 1, 0; }
int NAME(GetProgramLog)(Program* program, char* log) { return strcpy(log, program->log), 0; }
int CODE(Size)(Program* program, size_t* size) { return *size = program->size, 0; }
#ifdef HIP
int hiprtcGetCode(Program* program, char* code) { return memcpy(code, program->code, program->size), 0; }
#else
int nvrtcGetCUBIN(Program* program, char* code) { return memcpy(code, program->code, program->size), 0; }
#endif
