// libamdhip64 without a GPU: the module, launch and error calls that a program loading code objects makes. What a
// call means is decided by functions that the owner of this process connects; without them there is no device.
// Layouts and numbers are those of hip_runtime_api.h. C only, so that no C++ library is needed.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kInvalidConfiguration = 9,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kNoBinaryForGpu = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kLaunchFailure = 719,
  kNotSupported = 801,
  kUnknown = 999,
};

struct Launch {
  void* function;
  void* stream;
  void** params;
  uint32_t grid[3], block[3], shared_bytes, extended;
};

struct LaunchConfig {  // HIP_LAUNCH_CONFIG
  uint32_t grid[3], block[3], shared_bytes;
  void* stream;
  const void* attributes;
  uint32_t attribute_count;
};

struct Device {
  int (*load)(const void* image, void** module);
  int (*find)(void* module, const char* name, void** function);
  int (*launch)(const Launch* launch);
};

static Device device;

// What the last failed call of this thread has to say beyond its status.
static __thread char* message;
static __thread int message_status;

EXPORT void standin_connect(const Device* connected) {
  device = connected ? *connected : Device();
}

EXPORT void standin_explain(int status, const char* text) {
  free(message);
  message = strdup(text);
  message_status = status;
}

EXPORT int hipInit(unsigned) { return device.load ? kSuccess : kNoDevice; }

EXPORT int hipDriverGetVersion(int* version) {
  *version = 70000000;
  return kSuccess;
}

EXPORT int hipGetDevice(int* index) {
  *index = 0;
  return device.load ? kSuccess : kNoDevice;
}

EXPORT int hipSetDevice(int index) {
  if (!device.load) return kNoDevice;
  return index == 0 ? kSuccess : kInvalidDevice;
}

EXPORT int hipModuleLoadData(void** module, const void* image) {
  if (!device.load) return kNoDevice;
  return module && image ? device.load(image, module) : kInvalidValue;
}

EXPORT int hipModuleGetFunction(void** function, void* module, const char* name) {
  if (!device.find) return kNoDevice;
  return function && name ? device.find(module, name, function) : kInvalidValue;
}

// Blocks get all the LDS they ask for without opting in, as on the hardware.
EXPORT int hipFuncSetAttribute(const void*, int, int) { return kSuccess; }

static int launch(const Launch& one, void** extra) {
  if (!device.launch) return kNoDevice;
  if (extra || !one.params) return kInvalidValue;
  return device.launch(&one);
}

EXPORT int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                                 void** params, void** extra) {
  Launch one = {function, stream, params, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, 0};
  return launch(one, extra);
}

#ifdef EXTENDED_LAUNCH
EXPORT int hipDrvLaunchKernelEx(const LaunchConfig* config, void* function, void** params, void** extra) {
  if (config->attribute_count) return kNotSupported;  // clusters and dependent launches are not for these devices
  const uint32_t *grid = config->grid, *block = config->block;
  Launch one = {function, config->stream, params, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]},
                config->shared_bytes, 1};
  return launch(one, extra);
}
#endif

EXPORT const char* hipGetErrorName(int status) {
  switch (status) {
    case kSuccess: return "hipSuccess";
    case kInvalidValue: return "hipErrorInvalidValue";
    case kInvalidConfiguration: return "hipErrorInvalidConfiguration";
    case kNoDevice: return "hipErrorNoDevice";
    case kInvalidDevice: return "hipErrorInvalidDevice";
    case kInvalidImage: return "hipErrorInvalidImage";
    case kNoBinaryForGpu: return "hipErrorNoBinaryForGpu";
    case kInvalidHandle: return "hipErrorInvalidHandle";
    case kNotFound: return "hipErrorNotFound";
    case kLaunchFailure: return "hipErrorLaunchFailure";
    case kNotSupported: return "hipErrorNotSupported";
    default: return "hipErrorUnknown";
  }
}

static const char* usual_text(int status) {
  switch (status) {
    case kSuccess: return "no error";
    case kInvalidValue: return "invalid argument";
    case kInvalidConfiguration: return "invalid configuration argument";
    case kNoDevice: return "no ROCm-capable device is detected";
    case kInvalidDevice: return "invalid device ordinal";
    case kInvalidImage: return "device kernel image is invalid";
    case kNoBinaryForGpu: return "no kernel image is available for execution on the device";
    case kInvalidHandle: return "invalid resource handle";
    case kNotFound: return "named symbol not found";
    case kLaunchFailure: return "unspecified launch failure";
    case kNotSupported: return "operation not supported";
    default: return "unknown error";
  }
}

EXPORT const char* hipGetErrorString(int status) {
  return message && status == message_status ? message : usual_text(status);
}
