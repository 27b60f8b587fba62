// A recording stand-in for the CUDA driver and the HIP runtime: the same names, no GPU. Every launch is appended to a
// log that Python reads back; statuses can be planted. Built with -DHIP for the AMD names.
#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned grid[3], block[3], shared_bytes, attribute_count, extended;
  void *stream, *function, *context;
  unsigned attribute_ids[4];
  unsigned char attribute_values[4][64];
  unsigned char params[512];
} Launch;

typedef struct {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  struct { unsigned id, pad; unsigned char value[64]; }* attributes;
  unsigned attribute_count;
} Config;

typedef struct { char name[128]; unsigned params_bytes; int shared, clusters; } Function;

#define LAUNCHES 4096
static Launch launches[LAUNCHES];
static unsigned launch_count, module_count, function_count;
static int fail_launch, fail_load, fail_clusters, version = 13000, cluster_capacity = 99, devices = 2;
static unsigned params_bytes = 96, recording = 1;
static __thread void* context;
static Function functions[256];

void stub_reset(void) {
  launch_count = module_count = function_count = 0;
  fail_launch = fail_load = fail_clusters = 0;
  version = 13000;
  cluster_capacity = 99;
  recording = 1;
  context = 0;
}
void stub_set(const char* name, int value) {
  if (!strcmp(name, "fail_launch")) fail_launch = value;
  if (!strcmp(name, "fail_load")) fail_load = value;
  if (!strcmp(name, "fail_clusters")) fail_clusters = value;
  if (!strcmp(name, "version")) version = value;
  if (!strcmp(name, "cluster_capacity")) cluster_capacity = value;
  if (!strcmp(name, "params_bytes")) params_bytes = value;
  if (!strcmp(name, "recording")) recording = value;
}
unsigned stub_count(const char* name) {
  if (!strcmp(name, "launches")) return launch_count;
  if (!strcmp(name, "modules")) return module_count;
  return function_count;
}
Launch* stub_launch(unsigned index) { return &launches[index]; }
const char* stub_function_name(Function* function) { return function->name; }
int stub_function_shared(Function* function) { return function->shared; }
int stub_function_clusters(Function* function) { return function->clusters; }

static int record(Launch launch, void** params, void* function) {
  if (fail_launch) {
    int status = fail_launch;
    if (status == 201) fail_launch = 0;  // once: the caller binds a context and tries again
    return status;
  }
  if (!recording) return 0;
  launch.function = function;
  launch.context = context;
  memcpy(launch.params, params[0], params_bytes);
  launches[__atomic_fetch_add(&launch_count, 1, __ATOMIC_RELAXED) % LAUNCHES] = launch;  // threads launch at once
  return 0;
}

static int plain(void* f, const unsigned* dims, unsigned shared, void* stream, void** params) {
  Launch launch;
  memset(&launch, 0, sizeof launch);
  memcpy(launch.grid, dims, 12);
  memcpy(launch.block, dims + 3, 12);
  launch.shared_bytes = shared;
  launch.stream = stream;
  return record(launch, params, f);
}

static int extended(const Config* config, void* f, void** params) {
  Launch launch;
  memset(&launch, 0, sizeof launch);
  memcpy(launch.grid, config->grid, 12);
  memcpy(launch.block, config->block, 12);
  launch.shared_bytes = config->shared_bytes;
  launch.stream = config->stream;
  launch.extended = 1;
  launch.attribute_count = config->attribute_count;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    launch.attribute_ids[i] = config->attributes[i].id;
    memcpy(launch.attribute_values[i], config->attributes[i].value, 64);
  }
  return record(launch, params, f);
}

static int load(void** module, const char* image) {
  if (fail_load) return fail_load;
  if (memcmp(image, "\177ELF", 4)) return 200;
  ++module_count;
  *module = (void*)image;
  return 0;
}
static int get_function(void** function, const char* name) {
  if (strstr(name, "absent")) return 500;
  Function* made = &functions[function_count++ % 256];
  memset(made, 0, sizeof *made);
  strncpy(made->name, name, sizeof made->name - 1);
  *function = made;
  return 0;
}
static int set_attribute(Function* function, int attribute, int value) {
  if (attribute == 8) function->shared = value;
  if (attribute == 14) function->clusters = value;
  return 0;
}
static int clusters(int* count, const Config* config) {
  if (fail_clusters) return fail_clusters;
  unsigned wanted = config->attribute_count ? *(const unsigned*)config->attributes[0].value : 1;
  *count = wanted <= (unsigned)cluster_capacity ? 7 : 0;
  return 0;
}
static const char* name_of(int status) {
  switch (status) {
    case 1: return "INVALID_VALUE";
    case 2: return "OUT_OF_MEMORY";
    case 200: return "INVALID_IMAGE";
    case 209: return "NO_BINARY_FOR_GPU";
    case 222: return "UNSUPPORTED_PTX_VERSION";
    case 700: return "ILLEGAL_ADDRESS";
    default: return "SOME_ERROR";
  }
}

#ifdef HIP
int hipInit(unsigned flags) { return (void)flags, 0; }
int hipDriverGetVersion(int* number) { return *number = 70100000, 0; }
int hipGetDevice(int* device) { return *device = context ? (int)(size_t)context - 1 : 0, 0; }
int hipSetDevice(int device) { return device < devices ? (context = (void*)(size_t)(device + 1), 0) : 101; }
int hipModuleLoadData(void** module, const char* image) { return load(module, image); }
int hipModuleGetFunction(void** function, void* module, const char* name) { return (void)module, get_function(function, name); }
int hipFuncSetAttribute(void* f, int attribute, int value) { return set_attribute(f, attribute, value); }
int hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** params, void** extra) {
  unsigned dims[6] = {gx, gy, gz, bx, by, bz};
  return (void)extra, plain(f, dims, shared, stream, params);
}
#ifdef EXTENDED
int hipDrvLaunchKernelEx(const Config* config, void* f, void** params, void** extra) { return (void)extra, extended(config, f, params); }
int hipOccupancyMaxActiveClusters(int* count, void* f, const Config* config) { return (void)f, clusters(count, config); }
#endif
const char* hipGetErrorName(int status) { return name_of(status); }
const char* hipGetErrorString(int status) { return status == 700 ? "illegal memory access" : "what it says"; }
#else
int cuInit(unsigned flags) { return (void)flags, 0; }
int cuDriverGetVersion(int* number) { return *number = version, 0; }
int cuDeviceGet(int* device, int ordinal) { return ordinal < devices ? (*device = ordinal, 0) : 101; }
int cuDevicePrimaryCtxRetain(void** made, int device) { return *made = (void*)(size_t)(0xc0 + device), 0; }
int cuCtxGetCurrent(void** current) { return *current = context, 0; }
int cuCtxSetCurrent(void* wanted) { return context = wanted, 0; }
int cuModuleLoadData(void** module, const char* image) { return context ? load(module, image) : 201; }
int cuModuleGetFunction(void** function, void* module, const char* name) { return (void)module, get_function(function, name); }
int cuFuncSetAttribute(void* f, int attribute, int value) { return set_attribute(f, attribute, value); }
int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void* stream, void** params, void** extra) {
  unsigned dims[6] = {gx, gy, gz, bx, by, bz};
  return (void)extra, plain(f, dims, shared, stream, params);
}
int cuLaunchKernelEx(const Config* config, void* f, void** params, void** extra) { return (void)extra, extended(config, f, params); }
int cuOccupancyMaxActiveClusters(int* count, void* f, const Config* config) { return (void)f, clusters(count, config); }
int cuGetErrorName(int status, const char** text) { return *text = name_of(status), 0; }
int cuGetErrorString(int status, const char** text) { return *text = status == 700 ? "illegal memory access" : "what it says", 0; }
#endif
