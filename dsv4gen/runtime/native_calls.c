// The short way of a launch function (repeat.py) as one call: compare with remembered calls, test and pack addresses,
// launch. Tensors are read through torch's DLPack exchange table, so nothing here depends on torch's headers or build.
//
// A Caller belongs to one launch function and says what its op takes; a Memory is what one call left behind.
#define Py_LIMITED_API 0x030a0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define TENSORS_MAX 32
#define PARAMS_MAX 4096
#define DLPACK_MAJOR 1
#define DLPACK_CUDA 2

// The parts of dlpack.h that are used; its major version vouches for the layout.
typedef struct { int32_t type, id; } Device;
typedef struct {
  void *data;
  Device device;
  int32_t ndim;
  struct { uint8_t code, bits; uint16_t lanes; } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Tensor;
typedef struct Exchange {
  struct { uint32_t major, minor; } version;
  struct Exchange *older;
  void *allocate, *export_managed, *import_managed;
  int (*read)(void *object, Tensor *out);
  int (*stream)(int32_t device_type, int32_t device_id, void **out);
} Exchange;

typedef int (*LaunchExtended)(const void *config, void *function, void **parameters, void **extra);
typedef int (*LaunchPlain)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                           void *stream, void **parameters, void **extra);

typedef struct { unsigned align; int optional, place; } Rule;
typedef struct { int written, other, in_place; } Pair;

typedef struct {
  PyObject_HEAD
  PyObject *tensor, *parameter, *stream, *current, *failed, *known;
  const Exchange *exchange;
  void *launch;
  int extended, checked, size, tensors, numbers, pairs;
  Rule rules[TENSORS_MAX];
  Pair *pair;
} Caller;

typedef struct { const void *config; void *function, *stream; unsigned dims[7]; } Launch;

typedef struct {
  PyObject_HEAD
  PyObject *numbers, *device, *packed, *launches, *keep, *passed;
  void *stream;
  long index;
  int used, count;
  Tensor layout[TENSORS_MAX];  // `data` says whether there is one; shape and strides lie in `sizes`
  int missing[TENSORS_MAX];    // whether no address is a right one
  int64_t span[TENSORS_MAX];
  int64_t *sizes;
  Launch *launch;
} Memory;

static PyTypeObject *CallerType, *MemoryType;

// 1: read; 0: left out; -1: not for this way; -2: a plain tensor that nobody can read.
static int read_tensor(const Caller *self, PyObject *object, Tensor *out) {
  if (object == Py_None) return 0;
  PyObject *type = (PyObject *)Py_TYPE(object);
  if (type != self->tensor && type != self->parameter) return -1;
  if (self->exchange->read(object, out) == 0) return 1;
  PyErr_Clear();
  return -2;
}

static int same_layout(const Tensor *a, const Tensor *b) {
  size_t bytes = sizeof(int64_t) * (size_t)a->ndim;
  return a->ndim == b->ndim && !memcmp(&a->device, &b->device, sizeof a->device) &&
         !memcmp(&a->dtype, &b->dtype, sizeof a->dtype) && !memcmp(a->shape, b->shape, bytes) &&
         !memcmp(a->strides, b->strides, bytes);
}

static int same_number(PyObject *given, PyObject *was) {
  return given == was || (Py_TYPE(given) == Py_TYPE(was) && PyObject_RichCompareBool(given, was, Py_EQ) == 1);
}

// The calling thread's device and stream; -1 with an error. Where no device is asked for there is only one.
static int read_place(const Caller *self, PyObject *known, long *index, void **stream) {
  PyObject *first = ((Memory *)PyTuple_GetItem(known, 0))->device;
  PyObject *device = self->current == Py_None ? Py_NewRef(first) : PyObject_CallNoArgs(self->current);
  if (!device) return -1;
  *index = PyLong_AsLong(device);
  if (self->stream != Py_None) {
    PyObject *handle = PyObject_CallFunctionObjArgs(self->stream, device, NULL);
    *stream = handle ? PyLong_AsVoidPtr(handle) : NULL;
    Py_XDECREF(handle);
  } else if (self->exchange->stream(DLPACK_CUDA, (int32_t)*index, stream) && !PyErr_Occurred()) {
    PyErr_SetString(PyExc_RuntimeError, "no stream");
  }
  Py_DECREF(device);
  return PyErr_Occurred() ? -1 : 0;
}

static int right_addresses(const Caller *self, const Memory *memory, PyObject *const *arguments, const uint64_t *at) {
  for (int i = 0; i < self->tensors; ++i)
    if (at[i] & (self->rules[i].align - 1) || (!at[i] && !memory->missing[i])) return 0;
  for (int i = 0; i < self->pairs; ++i) {
    Pair pair = self->pair[i];
    int64_t distance = (int64_t)(at[pair.written] - at[pair.other]);
    if (self->rules[pair.written].optional && !at[pair.written]) continue;
    if (distance <= -memory->span[pair.written] || distance >= memory->span[pair.other]) continue;
    if (pair.in_place && arguments[pair.written] == arguments[pair.other]) continue;
    PyObject *key = Py_BuildValue("(iL)", i, (long long)distance);
    int passed = key ? PySet_Contains(memory->passed, key) : -1;
    Py_XDECREF(key);
    if (passed < 0) PyErr_Clear();
    if (passed != 1) return 0;
  }
  return 1;
}

static int launch_one(const Caller *self, const Launch *one, void **parameters) {
  const unsigned *n = one->dims;
  void *function = one->function;
  if (self->extended) return ((LaunchExtended)self->launch)(one->config, function, parameters, NULL);
  LaunchPlain plain = (LaunchPlain)self->launch;
  return plain(function, n[0], n[1], n[2], n[3], n[4], n[5], n[6], one->stream, parameters, NULL);
}

// The lock is given back while the driver runs: it waits when its queue is full, maybe for a kernel of another thread.
static int launch_all(const Caller *self, const Memory *memory, const uint64_t *at) {
  union { unsigned char bytes[PARAMS_MAX]; uint64_t words; } params;
  void *parameters[1] = {params.bytes};
  memcpy(params.bytes, PyBytes_AsString(memory->packed), (size_t)self->size);
  for (int i = 0; i < self->tensors; ++i)
    if (self->rules[i].place >= 0) memcpy(params.bytes + self->rules[i].place, &at[i], sizeof at[i]);
  for (int i = 0; i < memory->count; ++i) {
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = launch_one(self, &memory->launch[i], parameters);
    Py_END_ALLOW_THREADS
    if (status) {
      PyObject *pair = PyTuple_GetItem(memory->launches, i);
      PyObject *done = PyObject_CallFunction(self->failed, "iOOOK", status, memory->device, PyTuple_GetItem(pair, 0),
                                             PyTuple_GetItem(pair, 1), (unsigned long long)(uintptr_t)parameters);
      if (!done) return -1;
      Py_DECREF(done);
    }
  }
  return 0;
}

// 1: launched; 0: no memory fits, or an address is wrong; -1: an error to raise; -2: not for this way.
static int again(const Caller *self, PyObject *known, PyObject *const *arguments) {
  Tensor read[TENSORS_MAX];
  uint64_t at[TENSORS_MAX];
  Py_ssize_t memories = PyTuple_Size(known);
  long index;
  void *stream;
  if (!memories) return -2;
  if (read_place(self, known, &index, &stream)) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;  // an interrupt is nobody's to swallow
    PyErr_Clear();
    return -2;
  }
  for (int i = 0; i < self->tensors; ++i) {
    int present = read_tensor(self, arguments[i], &read[i]);
    if (present < 0) return present == -1 ? -2 : 0;
    at[i] = present ? (uint64_t)(uintptr_t)read[i].data + read[i].byte_offset : 0;
  }
  for (Py_ssize_t m = 0; m < memories; ++m) {
    Memory *memory = (Memory *)PyTuple_GetItem(known, m);
    int fits = memory->index == index && memory->stream == stream;
    for (int i = 0; fits && i < self->numbers; ++i)
      fits = same_number(arguments[self->tensors + i], PyTuple_GetItem(memory->numbers, i));
    for (int i = 0; fits && i < self->tensors; ++i) {
      int present = arguments[i] != Py_None;
      fits = present == (memory->layout[i].data != NULL) && (!present || same_layout(&read[i], &memory->layout[i]));
    }
    if (!fits) continue;
    if (self->checked && !right_addresses(self, memory, arguments, at)) return 0;
    if (launch_all(self, memory, at)) return -1;
    memory->used = 1;
    return 1;
  }
  return 0;
}

static PyObject *caller_again(Caller *self, PyObject *const *arguments, Py_ssize_t count) {
  if (count != self->tensors + self->numbers) {
    PyErr_SetString(PyExc_TypeError, "not the tensors and numbers of this op");
    return NULL;
  }
  PyObject *known = self->known;
  Py_INCREF(known);
  int done = again(self, known, arguments);
  Py_DECREF(known);
  if (done == -1) return NULL;
  return Py_NewRef(done == 1 ? Py_True : done == 0 ? Py_False : Py_None);
}

static PyObject *caller_know(Caller *self, PyObject *known) {
  int right = PyTuple_Check(known);
  for (Py_ssize_t i = 0; right && i < PyTuple_Size(known); ++i)
    right = Py_TYPE(PyTuple_GetItem(known, i)) == MemoryType;
  if (!right) {
    PyErr_SetString(PyExc_TypeError, "known is no tuple of memories");
    return NULL;
  }
  PyObject *old = self->known;
  self->known = Py_NewRef(known);
  Py_DECREF(old);
  Py_RETURN_NONE;
}

static int keep_layouts(const Caller *self, Memory *memory, PyObject *tensors) {
  Tensor read[TENSORS_MAX];
  size_t dimensions = 0;
  for (int i = 0; i < self->tensors; ++i) {
    int present = read_tensor(self, PyTuple_GetItem(tensors, i), &read[i]);
    if (present < 0) return 0;
    memset(&memory->layout[i], 0, sizeof memory->layout[i]);
    memory->missing[i] = self->rules[i].optional;
    if (!present) continue;
    memory->layout[i] = read[i];
    memory->layout[i].data = memory;
    dimensions += (size_t)read[i].ndim;
    int64_t elements = 1;
    for (int j = 0; j < read[i].ndim; ++j) elements *= read[i].shape[j];
    if (elements) memory->missing[i] = 0;
  }
  int64_t *next = memory->sizes = PyMem_Malloc(sizeof(int64_t) * (2 * dimensions + 1));
  if (!next) return 0;
  for (int i = 0; i < self->tensors; ++i) {
    Tensor *layout = &memory->layout[i];
    size_t count = (size_t)layout->ndim;
    if (!layout->data) continue;
    layout->shape = memcpy(next, read[i].shape, count * sizeof *next);
    layout->strides = memcpy(next + count, read[i].strides, count * sizeof *next);
    next += 2 * count;
  }
  return 1;
}

static int keep_launches(const Caller *self, Memory *memory) {
  memory->count = (int)PyTuple_Size(memory->launches);
  memory->launch = PyMem_Calloc((size_t)memory->count + 1, sizeof *memory->launch);
  for (int i = 0; memory->launch && i < memory->count; ++i) {
    Launch *one = &memory->launch[i];
    PyObject *pair = PyTuple_GetItem(memory->launches, i);
    unsigned long long config = 0, function, stream = 0;
    unsigned *n = one->dims;
    int right = self->extended ? PyArg_ParseTuple(pair, "KK", &config, &function)
                               : PyArg_ParseTuple(pair, "(IIIIIIIK)K", n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6,
                                                  &stream, &function);
    if (!right) return 0;
    one->config = (const void *)(uintptr_t)config;
    one->function = (void *)(uintptr_t)function;
    one->stream = (void *)(uintptr_t)stream;
  }
  return memory->launch != NULL;
}

static PyObject *caller_memory(Caller *self, PyObject *arguments) {
  PyObject *tensors, *numbers, *device, *packed, *launches, *keep, *spans, *passed;
  unsigned long long stream;
  if (!PyArg_ParseTuple(arguments, "O!O!O!KO!O!OO!O!", &PyTuple_Type, &tensors, &PyTuple_Type, &numbers, &PyLong_Type,
                        &device, &stream, &PyBytes_Type, &packed, &PyTuple_Type, &launches, &keep, &PyTuple_Type,
                        &spans, &PyFrozenSet_Type, &passed))
    return NULL;
  Memory *memory = PyObject_New(Memory, MemoryType);
  if (!memory) return NULL;
  memory->numbers = Py_NewRef(numbers);
  memory->device = Py_NewRef(device);
  memory->packed = Py_NewRef(packed);
  memory->launches = Py_NewRef(launches);
  memory->keep = Py_NewRef(keep);
  memory->passed = Py_NewRef(passed);
  memory->stream = (void *)(uintptr_t)stream;
  memory->index = PyLong_AsLong(device);
  memory->used = memory->count = 0;
  memory->sizes = NULL;
  memory->launch = NULL;
  int right = PyTuple_Size(tensors) == self->tensors && PyTuple_Size(numbers) == self->numbers &&
              PyBytes_Size(packed) >= self->size && (!self->pairs || PyTuple_Size(spans) == self->tensors);
  right = right && keep_layouts(self, memory, tensors) && keep_launches(self, memory);
  for (int i = 0; right && self->pairs && i < self->tensors; ++i)
    memory->span[i] = PyLong_AsLongLong(PyTuple_GetItem(spans, i));
  if (right && !PyErr_Occurred()) return (PyObject *)memory;
  Py_DECREF(memory);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "nothing that can be remembered here");
  return NULL;
}

static PyObject *memory_used(Memory *self, void *closure) { return (void)closure, PyBool_FromLong(self->used); }

static void memory_dealloc(Memory *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_DECREF(self->numbers);
  Py_DECREF(self->device);
  Py_DECREF(self->packed);
  Py_DECREF(self->launches);
  Py_DECREF(self->keep);
  Py_DECREF(self->passed);
  PyMem_Free(self->sizes);
  PyMem_Free(self->launch);
  PyObject_Free(self);
  Py_DECREF(type);
}

static int caller_traverse(Caller *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->tensor);
  Py_VISIT(self->parameter);
  Py_VISIT(self->stream);
  Py_VISIT(self->current);
  Py_VISIT(self->failed);
  Py_VISIT(self->known);
  return 0;
}

static void caller_dealloc(Caller *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_DECREF(self->tensor);
  Py_DECREF(self->parameter);
  Py_DECREF(self->stream);
  Py_DECREF(self->current);
  Py_DECREF(self->failed);
  Py_XDECREF(self->known);
  PyMem_Free(self->pair);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

// Functions of torch's table in the layout that is known here; NULL with an error where it has none.
static const Exchange *find_exchange(PyObject *capsule) {
  const Exchange *found = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  while (found && found->version.major != DLPACK_MAJOR) found = found->older;
  if (found && found->read && found->stream) return found;
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no DLPack exchange of version 1");
  return NULL;
}

static int keep_rules(Caller *self, PyObject *rules, PyObject *pairs) {
  self->tensors = (int)PyTuple_Size(rules);
  self->pairs = (int)PyTuple_Size(pairs);
  self->pair = PyMem_Calloc((size_t)self->pairs + 1, sizeof *self->pair);
  if (!self->pair || self->tensors > TENSORS_MAX || self->size > PARAMS_MAX) return 0;
  for (int i = 0; i < self->tensors; ++i) {
    Rule *rule = &self->rules[i];
    if (!PyArg_ParseTuple(PyTuple_GetItem(rules, i), "Ipi", &rule->align, &rule->optional, &rule->place)) return 0;
    if (!rule->align || rule->align & (rule->align - 1) || rule->place + (int)sizeof(uint64_t) > self->size) return 0;
  }
  for (int i = 0; i < self->pairs; ++i) {
    Pair *pair = &self->pair[i];
    unsigned written, other, tensors = (unsigned)self->tensors;
    if (!PyArg_ParseTuple(PyTuple_GetItem(pairs, i), "IIp", &written, &other, &pair->in_place)) return 0;
    if (written >= tensors || other >= tensors) return 0;
    pair->written = (int)written;
    pair->other = (int)other;
  }
  return 1;
}

static PyObject *make_caller(PyObject *module, PyObject *arguments) {
  PyObject *tensor, *parameter, *capsule, *rules, *pairs, *stream, *current, *failed;
  unsigned long long launch;
  int extended, checked, size, numbers;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OOOKppiO!O!iOOO", &tensor, &parameter, &capsule, &launch, &extended, &checked,
                        &size, &PyTuple_Type, &rules, &PyTuple_Type, &pairs, &numbers, &stream, &current, &failed))
    return NULL;
  const Exchange *exchange = find_exchange(capsule);
  Caller *self = exchange ? PyObject_GC_New(Caller, CallerType) : NULL;
  if (!self) return NULL;
  self->exchange = exchange;
  self->tensor = Py_NewRef(tensor);
  self->parameter = Py_NewRef(parameter);
  self->stream = Py_NewRef(stream);
  self->current = Py_NewRef(current);
  self->failed = Py_NewRef(failed);
  self->known = PyTuple_New(0);
  self->pair = NULL;
  self->launch = (void *)(uintptr_t)launch;
  self->extended = extended;
  self->checked = checked;
  self->size = size;
  self->numbers = numbers;
  int right = self->known && keep_rules(self, rules, pairs);
  PyObject_GC_Track(self);
  if (right) return (PyObject *)self;
  Py_DECREF(self);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "more tensors or parameters than fit, or odd rules");
  return NULL;
}

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef caller_methods[] = {
    {"again", METHOD(caller_again), METH_FASTCALL, "Tensors and numbers: True launched, False no, None ask elsewhere."},
    {"know", METHOD(caller_know), METH_O, "Replace the memories that calls are compared with, newest first."},
    {"memory", METHOD(caller_memory), METH_VARARGS, "What a call left behind."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot caller_slots[] = {
    {Py_tp_methods, caller_methods}, {Py_tp_traverse, caller_traverse}, {Py_tp_dealloc, caller_dealloc}, {0, NULL}};
static PyType_Spec caller_spec = {"dsv4gen.runtime._native.Caller", sizeof(Caller), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  caller_slots};

static PyGetSetDef memory_values[] = {{"used", (getter)memory_used, NULL, "Whether a later call fitted.", NULL},
                                      {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot memory_slots[] = {{Py_tp_getset, memory_values}, {Py_tp_dealloc, memory_dealloc}, {0, NULL}};
static PyType_Spec memory_spec = {"dsv4gen.runtime._native.Memory", sizeof(Memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

static PyMethodDef functions[] = {{"make_caller", make_caller, METH_VARARGS, "The short way of one launch function."},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
  PyObject *module = PyModule_Create(&definition);
  CallerType = (PyTypeObject *)PyType_FromSpec(&caller_spec);
  MemoryType = (PyTypeObject *)PyType_FromSpec(&memory_spec);
  if (module && CallerType && MemoryType && !PyModule_AddStringConstant(module, "SOURCE", SOURCE)) return module;
  Py_XDECREF(module);
  return NULL;
}
