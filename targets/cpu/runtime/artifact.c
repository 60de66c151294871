/*===- artifact.c - What every compiled model does around its kernels -----===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Contexts, checks of the caller's tensors, buffers, weights files, errors.
 * The model itself is data (pto_model) and one function, its main.
 *
 *===----------------------------------------------------------------------===*/

#include "cpu.h"
#include "libc.h"
#include "pool.h"
#include "pto_artifact.h"
#include <stdatomic.h>

enum {
  BUFFER_ALIGNMENT = 64,
  HUGE_PAGE = 2 << 20,
  /* From here on, fewer TLB misses pay for the rounding up. */
  HUGE_PAGE_FROM = 4 << 20,
  MESSAGE_SIZE = 512
};

/* A block that only grows. */
typedef struct buffer {
  char *data;
  uint64_t size;
} buffer;

struct pto_context {
  pto_runtime runtime; /* first: loops get a pointer to it */
  const pto_model *model;
  const char *weights;
  pto_pool *pool;
  void (*user_loop)(void *user, int64_t n, void (*body)(void *, int64_t),
                    void *arg);
  void *user;
  int32_t threads;
  int32_t version; /* of the last run */
  int32_t failed;  /* status of a create that failed */
  buffer arena;
  buffer *owned;           /* one for each output */
  pto_tensor *outputs;     /* of the current run */
  const pto_tensor *given; /* what the caller passed as outputs */
  uint64_t *profile;
  char message[MESSAGE_SIZE];
};

static int fail(pto_context *context, int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(context->message, MESSAGE_SIZE, format, args);
  va_end(args);
  return status;
}

static int64_t element_size(int32_t dtype) {
  switch (dtype) {
  case PTO_U8:
  case PTO_I8:
  case PTO_BOOL:
    return 1;
  case PTO_U16:
  case PTO_I16:
  case PTO_F16:
  case PTO_BF16:
    return 2;
  case PTO_F32:
  case PTO_I32:
  case PTO_U32:
    return 4;
  case PTO_F64:
  case PTO_I64:
  case PTO_U64:
    return 8;
  }
  return 0;
}

static const char *dtype_name(int32_t dtype) {
  static const char *const names[] = {"?",   "f32", "u8", "i8",   "u16", "i16",
                                      "i32", "i64", "?",  "bool", "f16", "f64",
                                      "u32", "u64", "?",  "?",    "bf16"};
  return dtype >= 0 && dtype <= PTO_BF16 ? names[dtype] : "?";
}

/* Writes "2x?x4" (or "scalar"). */
static const char *shape_text(const int64_t *shape, int32_t rank, char *text,
                              size_t size) {
  size_t at = 0;
  if (rank == 0)
    return "scalar";
  text[0] = 0;
  for (int32_t i = 0; i < rank && at + 24 < size; ++i) {
    char digits[24];
    size_t n = 0;
    uint64_t rest = shape[i] < 0 ? (uint64_t)-shape[i] : (uint64_t)shape[i];
    if (i)
      text[at++] = 'x';
    if (shape[i] == -1) {
      text[at++] = '?';
      continue;
    }
    if (shape[i] < 0)
      text[at++] = '-';
    do
      digits[n++] = (char)('0' + rest % 10);
    while (rest /= 10);
    while (n)
      text[at++] = digits[--n];
  }
  text[at] = 0;
  return text;
}

/* Bytes of a tensor, or -1 if that overflows. */
static int64_t tensor_bytes(const pto_tensor *tensor) {
  int64_t bytes = element_size(tensor->dtype);
  for (int32_t i = 0; i < tensor->rank; ++i)
    if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes))
      return -1;
  return bytes;
}

/*===--- Memory ----------------------------------------------------------===*/

static int grow(buffer *block, uint64_t size) {
  if (size <= block->size)
    return 1;
  uint64_t alignment = size >= HUGE_PAGE_FROM ? HUGE_PAGE : BUFFER_ALIGNMENT;
  uint64_t rounded = (size + alignment - 1) / alignment * alignment;
  if (rounded < size || rounded > (uint64_t)PTRDIFF_MAX)
    return 0;
  free(block->data); /* first: the peak counts */
  block->data = aligned_alloc(alignment, rounded);
  block->size = block->data ? rounded : 0;
  if (!block->data)
    return 0;
  if (alignment == HUGE_PAGE)
    madvise(block->data, rounded, LIBC_MADV_HUGEPAGE);
  return 1;
}

/* One mapping for all contexts, until the library is unloaded. */
static _Atomic(char *) mapped_weights;
static _Atomic uint64_t mapped_size;

__attribute__((destructor)) static void unmap_weights(void) {
  char *mapped = atomic_exchange(&mapped_weights, (char *)0);
  if (mapped)
    munmap(mapped, atomic_load(&mapped_size));
}

static int map_weights(pto_context *context, const char *given) {
  const pto_model *model = context->model;
  char *mapped = atomic_load(&mapped_weights);
  if (mapped) {
    context->weights = mapped + sizeof(pto_weights_header);
    return PTO_OK;
  }

  char path[4096];
  size_t file = strlen(model->weights_file), folder = 0;
  if (given) {
    file = strlen(given);
  } else {
    libc_dl_info info;
    if (!dladdr(model, &info) || !info.dli_fname)
      return fail(context, PTO_BAD_WEIGHTS,
                  "cannot find out where this library is, to look for %s "
                  "beside it; set pto_options.weights_path",
                  model->weights_file);
    size_t length = strlen(info.dli_fname);
    for (size_t i = 0; i < length; ++i)
      if (info.dli_fname[i] == '/')
        folder = i + 1;
    if (folder + file + 1 > sizeof(path))
      return fail(context, PTO_BAD_WEIGHTS, "path of %s is too long",
                  model->weights_file);
    memcpy(path, info.dli_fname, folder);
  }
  if (folder + file + 1 > sizeof(path))
    return fail(context, PTO_BAD_WEIGHTS, "weights_path is too long");
  memcpy(path + folder, given ? given : model->weights_file, file + 1);

  int fd = open(path, LIBC_O_RDONLY | LIBC_O_CLOEXEC);
  if (fd < 0)
    return fail(context, PTO_BAD_WEIGHTS,
                "cannot open the weights file %s; it belongs beside the "
                "library, or name it in pto_options.weights_path",
                path);
  pto_weights_header header;
  ptrdiff_t n = read(fd, &header, sizeof(header));
  uint64_t total = model->weights_size + sizeof(header);
  if (n != (ptrdiff_t)sizeof(header) ||
      memcmp(header.magic, "PTOWGHT1", 8) != 0 ||
      header.size != model->weights_size || header.id != model->weights_id ||
      lseek(fd, 0, LIBC_SEEK_END) != (int64_t)total) {
    close(fd);
    return fail(context, PTO_BAD_WEIGHTS,
                "%s is not the weights file of this build of %s, or is cut "
                "short; copy both from the same build",
                path, model->signature.model);
  }
  mapped = mmap((void *)0, total, LIBC_PROT_READ, LIBC_MAP_SHARED, fd, 0);
  close(fd);
  if (mapped == LIBC_MAP_FAILED)
    return fail(context, PTO_OUT_OF_MEMORY, "cannot map %s", path);
  char *expected = (char *)0;
  atomic_store(&mapped_size, total);
  if (!atomic_compare_exchange_strong(&mapped_weights, &expected, mapped)) {
    munmap(mapped, total);
    mapped = expected;
  }
  context->weights = mapped + sizeof(pto_weights_header);
  return PTO_OK;
}

/*===--- Parallel loops --------------------------------------------------===*/

static void serial_loop(pto_runtime *runtime, int64_t n, pto_body body,
                        void *arg) {
  for (int64_t i = 0; i < n; ++i)
    body(arg, i);
}

static void pool_loop(pto_runtime *runtime, int64_t n, pto_body body,
                      void *arg) {
  pto_pool_run(((pto_context *)runtime)->pool, n, body, arg);
}

static void user_loop(pto_runtime *runtime, int64_t n, pto_body body,
                      void *arg) {
  pto_context *context = (pto_context *)runtime;
  if (n > 0)
    context->user_loop(context->user, n, body, arg);
}

static int set_loops(pto_context *context, const pto_options *options) {
  int32_t limit = (int32_t)context->model->threads;
  int32_t threads = options ? options->threads : 0;
  if (threads < 0)
    return fail(context, PTO_INVALID_ARGUMENT, "options.threads is %d",
                threads);
  if (threads == 0)
    threads = limit == 1 ? 1 : pto_available_cores();
  if (limit > 0 && threads > limit)
    threads = limit;
  context->threads = threads;
  if (options && options->parallel_for) {
    context->runtime.parallel_for = user_loop;
    context->user_loop = options->parallel_for;
    context->user = options->user;
    return PTO_OK;
  }
  context->runtime.parallel_for = serial_loop;
  if (threads == 1)
    return PTO_OK;
  context->pool = pto_pool_create(threads);
  if (!context->pool)
    return fail(context, PTO_OUT_OF_MEMORY, "no memory for %d threads",
                threads);
  context->runtime.parallel_for = pool_loop;
  return PTO_OK;
}

/*===--- Life of a context -----------------------------------------------===*/

static int set_up(pto_context *context, const pto_options *options) {
  const pto_model *model = context->model;
  uint64_t missing = pto_missing_features(model->features);
  if (missing) {
    char names[320];
    pto_feature_names(missing, names, sizeof(names));
    return fail(context, PTO_UNSUPPORTED_CPU,
                "%s was compiled for %s; this CPU lacks: %s",
                model->signature.model, model->target, names);
  }
  context->weights = model->weights;
  if (model->weights_file) {
    int status =
        map_weights(context, options ? options->weights_path : (char *)0);
    if (status != PTO_OK)
      return status;
  }
  size_t outputs = model->signature.output_count;
  context->owned = calloc(outputs + 1, sizeof(buffer));
  context->outputs = calloc(outputs + 1, sizeof(pto_tensor));
  if (!context->owned || !context->outputs)
    return fail(context, PTO_OUT_OF_MEMORY, "no memory for a context");
  return set_loops(context, options);
}

int pto_create(const pto_model *model, const pto_options *options,
               pto_context **result) {
  if (!result)
    return PTO_INVALID_ARGUMENT;
  pto_context *context = calloc(1, sizeof(pto_context));
  *result = context;
  if (!context)
    return PTO_OUT_OF_MEMORY;
  context->model = model;
  context->version = -1;
  context->failed = set_up(context, options);
  return context->failed;
}

void pto_destroy(pto_context *context) {
  if (!context)
    return;
  pto_pool_destroy(context->pool);
  if (context->owned)
    for (size_t i = 0; i < context->model->signature.output_count; ++i)
      free(context->owned[i].data);
  free(context->owned);
  free(context->outputs);
  free(context->arena.data);
  free(context);
}

const char *pto_error(const pto_context *context) {
  return context ? context->message : "no context (out of memory?)";
}

void pto_profile(pto_context *context, uint64_t *ns) { context->profile = ns; }

uint64_t pto_arena_bytes(const pto_context *context) {
  return context->arena.size;
}

int32_t pto_threads(const pto_context *context) { return context->threads; }

int32_t pto_version_used(const pto_context *context) {
  return context->version;
}

/*===--- A run -----------------------------------------------------------===*/

/* Checks tensor against what the model wants; `kind` is "input" or "output". */
static int check_tensor(pto_context *context, const char *kind, size_t index,
                        const pto_value_info *want, const int64_t *shape,
                        const pto_tensor *tensor) {
  char have[128], need[128];
  if (tensor->dtype != want->dtype)
    return fail(context, PTO_INVALID_ARGUMENT,
                "%s %zu ('%s'): element type is %s (%d), must be %s", kind,
                index, want->name, dtype_name(tensor->dtype), tensor->dtype,
                dtype_name(want->dtype));
  if (tensor->rank != want->rank)
    return fail(context, PTO_INVALID_ARGUMENT,
                "%s %zu ('%s'): rank is %d, must be %d (%s)", kind, index,
                want->name, tensor->rank, want->rank,
                shape_text(shape, want->rank, need, sizeof(need)));
  for (int32_t i = 0; i < want->rank; ++i)
    if (tensor->shape[i] < 0 || (shape[i] >= 0 && shape[i] != tensor->shape[i]))
      return fail(context, PTO_INVALID_ARGUMENT,
                  "%s %zu ('%s'): shape is %s, must be %s", kind, index,
                  want->name,
                  shape_text(tensor->shape, tensor->rank, have, sizeof(have)),
                  shape_text(shape, want->rank, need, sizeof(need)));
  int64_t bytes = tensor_bytes(tensor);
  if (bytes < 0)
    return fail(context, PTO_INVALID_ARGUMENT,
                "%s %zu ('%s'): shape %s is too large", kind, index, want->name,
                shape_text(tensor->shape, tensor->rank, have, sizeof(have)));
  if (bytes > 0 && !tensor->data)
    return fail(context, PTO_INVALID_ARGUMENT, "%s %zu ('%s'): data is null",
                kind, index, want->name);
  int64_t size = element_size(tensor->dtype);
  if ((uintptr_t)tensor->data % (uintptr_t)size != 0)
    return fail(context, PTO_INVALID_ARGUMENT,
                "%s %zu ('%s'): data is not aligned to its element (%d bytes)",
                kind, index, want->name, (int)size);
  return PTO_OK;
}

/* Generated code reads a size where it is convenient: all that share a name
 * must agree. Equal names are one string in an artifact. */
static int check_named_sizes(pto_context *context, const pto_tensor *inputs) {
  const pto_signature *signature = &context->model->signature;
  for (size_t i = 0; i < signature->input_count; ++i) {
    const pto_value_info *a = &signature->inputs[i];
    for (int32_t d = 0; a->dims && d < a->rank; ++d) {
      if (a->shape[d] >= 0 || !a->dims[d][0])
        continue;
      for (size_t j = 0; j <= i; ++j) {
        const pto_value_info *b = &signature->inputs[j];
        for (int32_t e = 0; b->dims && e < b->rank; ++e)
          if (b->shape[e] < 0 && b->dims[e] == a->dims[d] &&
              inputs[j].shape[e] != inputs[i].shape[d])
            return fail(context, PTO_INVALID_ARGUMENT,
                        "input %zu ('%s'): dim %d ('%s') is %lld, but %lld in "
                        "input '%s'",
                        i, a->name, d, a->dims[d],
                        (long long)inputs[i].shape[d],
                        (long long)inputs[j].shape[e], b->name);
      }
    }
  }
  return PTO_OK;
}

/* The first input whose shape `version` does not take; `count`: none. */
static size_t first_misfit(const pto_signature *signature,
                           const pto_version *version, const pto_tensor *inputs,
                           const int64_t **want) {
  const int64_t *shape = version->shapes;
  for (size_t i = 0; i < signature->input_count; ++i) {
    *want = shape;
    for (int32_t d = 0; d < inputs[i].rank; ++d)
      if (shape[d] >= 0 && shape[d] != inputs[i].shape[d])
        return i;
    shape += inputs[i].rank;
  }
  return signature->input_count;
}

static int choose_version(pto_context *context, const pto_tensor *inputs) {
  const pto_model *model = context->model;
  const pto_signature *signature = &model->signature;
  const int64_t *want = (const int64_t *)0;
  for (uint64_t v = 0; v < model->version_count; ++v)
    if (first_misfit(signature, &model->versions[v], inputs, &want) ==
        signature->input_count) {
      context->version = (int32_t)v;
      return PTO_OK;
    }
  size_t i = first_misfit(signature, &model->versions[0], inputs, &want);
  char have[128], need[128];
  return fail(
      context, PTO_INVALID_ARGUMENT,
      "input %zu ('%s'): shape is %s; %s was compiled for %s%s", i,
      signature->inputs[i].name,
      shape_text(inputs[i].shape, inputs[i].rank, have, sizeof(have)),
      signature->model, shape_text(want, inputs[i].rank, need, sizeof(need)),
      model->version_count > 1 ? " and other shapes, but not for this" : "");
}

static int overlap(const pto_tensor *a, const pto_tensor *b) {
  uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
  return x < y + (uintptr_t)tensor_bytes(b) &&
         y < x + (uintptr_t)tensor_bytes(a);
}

/* Outputs are written while inputs are still read. */
static int check_overlap(pto_context *context, const pto_call *call) {
  const pto_signature *signature = &context->model->signature;
  for (size_t i = 0; i < signature->output_count; ++i) {
    if (!context->given[i].data)
      continue;
    for (size_t j = 0; j < signature->input_count; ++j)
      if (overlap(&call->outputs[i], &call->inputs[j]))
        return fail(context, PTO_INVALID_ARGUMENT,
                    "output '%s' overlaps input '%s'",
                    signature->outputs[i].name, signature->inputs[j].name);
    for (size_t j = 0; j < i; ++j)
      if (context->given[j].data &&
          overlap(&call->outputs[i], &call->outputs[j]))
        return fail(context, PTO_INVALID_ARGUMENT,
                    "output '%s' overlaps output '%s'",
                    signature->outputs[i].name, signature->outputs[j].name);
  }
  return PTO_OK;
}

static int prepare(pto_call *call, int64_t arena_bytes) {
  pto_context *context = call->context;
  const pto_signature *signature = &context->model->signature;
  for (size_t i = 0; i < signature->output_count; ++i) {
    pto_tensor *output = &call->outputs[i];
    const pto_tensor *given = &context->given[i];
    if (given->data) {
      int status = check_tensor(context, "output", i, &signature->outputs[i],
                                output->shape, given);
      if (status != PTO_OK)
        return status;
      output->data = given->data;
      continue;
    }
    int64_t bytes = tensor_bytes(output);
    /* At least one byte, so that null always means "not given". */
    if (bytes < 0 || !grow(&context->owned[i], (uint64_t)bytes + !bytes))
      return fail(context, PTO_OUT_OF_MEMORY, "no memory for output '%s'",
                  signature->outputs[i].name);
    output->data = context->owned[i].data;
  }
  int status = check_overlap(context, call);
  if (status != PTO_OK)
    return status;
  if (arena_bytes < 0 || !grow(&context->arena, (uint64_t)arena_bytes))
    return fail(context, PTO_OUT_OF_MEMORY,
                "no memory for %lld bytes of intermediate values",
                (long long)arena_bytes);
  call->arena = context->arena.data;
  return PTO_OK;
}

int pto_prepare(pto_call *call, int64_t arena_bytes) {
  if (call->status == PTO_OK)
    call->status = prepare(call, arena_bytes);
  return call->status;
}

void pto_require(pto_call *call, int32_t holds, const char *text) {
  if (!holds && call->status == PTO_OK)
    call->status = fail(call->context, PTO_INVALID_ARGUMENT, "%s", text);
}

void pto_check_index(pto_call *call, const int64_t *worst, const char *text) {
  if (call->status == PTO_OK && *worst != PTO_NO_BAD_INDEX)
    call->status =
        fail(call->context, PTO_RUNTIME_FAULT,
             "%s: index %lld is out of bounds", text, (long long)*worst);
}

static uint64_t now_ns(void) {
  libc_timespec t;
  clock_gettime(LIBC_CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void pto_invoke(pto_call *call, int64_t step, pto_kernel kernel,
                void *const *args, const int64_t *dims) {
  pto_context *context = call->context;
  if (__builtin_expect(call->status != PTO_OK, 0))
    return;
  if (__builtin_expect(context->profile != 0, 0)) {
    uint64_t start = now_ns();
    kernel(args, dims, call->runtime);
    context->profile[step] += now_ns() - start;
  } else {
    kernel(args, dims, call->runtime);
  }
  if (__builtin_expect(call->runtime->fault != PTO_FAULT_NONE, 0))
    call->status = fail(context, PTO_RUNTIME_FAULT, "kernel %s (step %lld): %s",
                        context->model->steps[step].name, (long long)step,
                        call->runtime->fault == PTO_FAULT_INDEX_OUT_OF_BOUNDS
                            ? "an index in the data is out of bounds"
                            : "unknown fault");
}

void pto_copy(pto_call *call, void *to, const void *from, int64_t bytes) {
  if (call->status == PTO_OK && bytes > 0)
    memcpy(to, from, (size_t)bytes);
}

int pto_run(pto_context *context, const pto_tensor *inputs, size_t n,
            pto_tensor *outputs, size_t m) {
  if (!context)
    return PTO_INVALID_ARGUMENT;
  if (context->failed)
    return context->failed; /* the message is create's */
  const pto_signature *signature = &context->model->signature;
  context->message[0] = 0;
  if (n != signature->input_count || m != signature->output_count)
    return fail(context, PTO_INVALID_ARGUMENT,
                "%zu inputs and %zu outputs given; %s has %zu and %zu", n, m,
                signature->model, signature->input_count,
                signature->output_count);
  if ((n && !inputs) || (m && !outputs))
    return fail(context, PTO_INVALID_ARGUMENT, "inputs or outputs is null");
  for (size_t i = 0; i < n; ++i) {
    int status = check_tensor(context, "input", i, &signature->inputs[i],
                              signature->inputs[i].shape, &inputs[i]);
    if (status != PTO_OK)
      return status;
  }
  int named = check_named_sizes(context, inputs);
  if (named != PTO_OK)
    return named;
  context->version = -1;
  int chosen = choose_version(context, inputs);
  if (chosen != PTO_OK)
    return chosen;
  for (size_t i = 0; i < m; ++i) {
    const pto_value_info *info = &signature->outputs[i];
    context->outputs[i].data = (void *)0;
    context->outputs[i].dtype = info->dtype;
    context->outputs[i].rank = info->rank;
    for (int32_t d = 0; d < info->rank; ++d)
      context->outputs[i].shape[d] = info->shape[d];
  }
  context->given = outputs;
  context->runtime.fault = PTO_FAULT_NONE;
  pto_call call = {.inputs = inputs,
                   .outputs = context->outputs,
                   .weights = context->weights,
                   .runtime = &context->runtime,
                   .context = context};
  pto_pool_hold(context->pool, 1);
  context->model->versions[context->version].main(&call);
  pto_pool_hold(context->pool, 0);
  if (call.status != PTO_OK)
    return call.status;
  for (size_t i = 0; i < m; ++i)
    if (!outputs[i].data)
      outputs[i] = context->outputs[i];
  return PTO_OK;
}
