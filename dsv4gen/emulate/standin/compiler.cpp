// libhiprtc without ROCm: programs live here, compiling is done by a function that the owner of this process connects.
// Numbers are those of hiprtc.h. C only, so that no C++ library is needed.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

enum {
  kSuccess = 0,
  kOutOfMemory = 1,
  kInvalidInput = 3,
  kInvalidProgram = 4,
  kInvalidOption = 5,
  kCompilation = 6,
  kInternalError = 11,
};

struct Program {
  char *source, *name, *log, *code;
  size_t code_size;
};

typedef int (*Compile)(Program* program, const char* source, const char* name, int count, const char** options);
static Compile compile;

EXPORT void standin_connect(Compile connected) { compile = connected; }

// What compiling gave: the code, of no bytes after an error, and what the compiler printed.
EXPORT void standin_result(Program* program, const void* code, size_t size, const char* log) {
  free(program->code);
  free(program->log);
  program->code = static_cast<char*>(malloc(size + 1));
  if (program->code) memcpy(program->code, code, size);
  program->code_size = program->code ? size : 0;
  program->log = strdup(log);
}

EXPORT int hiprtcVersion(int* major, int* minor) {
  *major = 7;
  *minor = 0;
  return kSuccess;
}

EXPORT int hiprtcCreateProgram(Program** made, const char* source, const char* name, int header_count, const char**,
                               const char**) {
  if (!made || !source || header_count) return kInvalidInput;
  Program* program = static_cast<Program*>(calloc(1, sizeof(Program)));
  if (!program) return kOutOfMemory;
  program->source = strdup(source);
  program->name = strdup(name ? name : "kernels.hip");
  *made = program;
  return kSuccess;
}

EXPORT int hiprtcDestroyProgram(Program** program) {
  if (!program || !*program) return kInvalidProgram;
  free((*program)->source);
  free((*program)->name);
  free((*program)->log);
  free((*program)->code);
  free(*program);
  *program = nullptr;
  return kSuccess;
}

EXPORT int hiprtcCompileProgram(Program* program, int count, const char** options) {
  if (!program) return kInvalidProgram;
  return compile ? compile(program, program->source, program->name, count, options) : kInternalError;
}

EXPORT int hiprtcGetProgramLogSize(Program* program, size_t* size) {
  *size = program->log ? strlen(program->log) + 1 : 1;
  return kSuccess;
}

EXPORT int hiprtcGetProgramLog(Program* program, char* log) {
  strcpy(log, program->log ? program->log : "");
  return kSuccess;
}

EXPORT int hiprtcGetCodeSize(Program* program, size_t* size) {
  *size = program->code_size;
  return program->code_size ? kSuccess : kInvalidProgram;
}

EXPORT int hiprtcGetCode(Program* program, char* code) {
  if (!program->code_size) return kInvalidProgram;
  memcpy(code, program->code, program->code_size);
  return kSuccess;
}

EXPORT const char* hiprtcGetErrorString(int status) {
  switch (status) {
    case kSuccess: return "HIPRTC_SUCCESS";
    case kOutOfMemory: return "HIPRTC_ERROR_OUT_OF_MEMORY";
    case kInvalidInput: return "HIPRTC_ERROR_INVALID_INPUT";
    case kInvalidProgram: return "HIPRTC_ERROR_INVALID_PROGRAM";
    case kInvalidOption: return "HIPRTC_ERROR_INVALID_OPTION";
    case kCompilation: return "HIPRTC_ERROR_COMPILATION";
    default: return "HIPRTC_ERROR_INTERNAL_ERROR";
  }
}
