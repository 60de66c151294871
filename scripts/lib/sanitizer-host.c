/*===- sanitizer-host.c - An application that uses a model the hard way ----===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 *   sanitizer-host MODEL.so THREADS N [short-input | shared-context]
 *
 * Runs the model (open sizes are N) on one thread; then in two contexts at
 * once, on the pool, on a parallel loop of its own, on buffers of exactly the
 * needed size at places aligned to their element alone, and on the model's own
 * output buffers. Every result must have the bytes of the first.
 *
 * With a last argument it breaks the contract, for the sanitizer to find: an
 * input that is one element short, or one context in two threads.
 *
 *===----------------------------------------------------------------------===*/
#include "targets/cpu/runtime/pto_artifact.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXTS = 2, RUNS = 10, MAX_VALUES = 16 };

static const pto_artifact_table *table;
static const pto_signature *signature;
static pto_tensor inputs[MAX_VALUES], expected[MAX_VALUES];

static void fail(const char *what, const char *why) {
  fprintf(stderr, "sanitizer-host: %s: %s\n", what, why);
  exit(1);
}

static size_t element_size(int32_t dtype) {
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
  case PTO_F64:
  case PTO_I64:
  case PTO_U64:
    return 8;
  }
  return 4;
}

static size_t byte_count(const pto_tensor *tensor) {
  size_t bytes = element_size(tensor->dtype);
  for (int32_t d = 0; d < tensor->rank; ++d)
    bytes *= (size_t)tensor->shape[d];
  return bytes;
}

/* The end of the block is the end of the data, so that one byte more is out of
 * bounds; its start is aligned to the element and to nothing larger. */
typedef struct {
  char *block, *data;
} place;

static place make_place(size_t bytes, size_t element) {
  place p;
  p.block = malloc(bytes + element);
  if (!p.block)
    fail("malloc", "no memory");
  p.data = p.block + element;
  return p;
}

static void make_input(size_t i, int64_t open_size, int is_short) {
  const pto_value_info *info = &signature->inputs[i];
  pto_tensor *tensor = &inputs[i];
  tensor->dtype = info->dtype;
  tensor->rank = info->rank;
  for (int32_t d = 0; d < info->rank; ++d)
    tensor->shape[d] = info->shape[d] < 0 ? open_size : info->shape[d];
  size_t element = element_size(info->dtype), bytes = byte_count(tensor);
  place p = make_place(bytes - (is_short ? element : 0), element);
  tensor->data = p.data;
  size_t count = bytes / element - (size_t)is_short;
  unsigned state = 12345u + (unsigned)i;
  for (size_t k = 0; k < count; ++k) {
    state = state * 1664525u + 1013904223u;
    if (info->dtype == PTO_F32) {
      float value = (float)(int)(state >> 8) / (1 << 23) - 1;
      memcpy(p.data + k * element, &value, element);
    } else {
      memset(p.data + k * element, 0, element);
      p.data[k * element] = (char)(state >> 31);
    }
  }
}

static pto_context *create(const pto_options *options) {
  pto_context *context;
  if (table->create(table->model, options, &context) != PTO_OK)
    fail("create", table->error(context));
  return context;
}

static void run(pto_context *context, pto_tensor *outputs) {
  if (table->run(context, inputs, signature->input_count, outputs,
                 signature->output_count) != PTO_OK)
    fail("run", table->error(context));
}

/* A parallel loop of the application's: a thread for each half. */
typedef struct {
  int64_t from, to;
  void (*body)(void *, int64_t);
  void *arg;
} half;

static void *run_half(void *arg) {
  half *h = arg;
  for (int64_t i = h->from; i < h->to; ++i)
    h->body(h->arg, i);
  return NULL;
}

static void own_loop(void *user, int64_t n, void (*body)(void *, int64_t),
                     void *arg) {
  (void)user;
  half first = {0, n / 2, body, arg}, second = {n / 2, n, body, arg};
  pthread_t other;
  if (pthread_create(&other, NULL, run_half, &second) != 0)
    fail("own_loop", "no thread");
  run_half(&first);
  pthread_join(other, NULL);
}

static void compare(const pto_tensor *outputs) {
  for (size_t i = 0; i < signature->output_count; ++i)
    if (outputs[i].rank != expected[i].rank ||
        memcmp(outputs[i].shape, expected[i].shape,
               sizeof(int64_t) * (size_t)outputs[i].rank) != 0 ||
        memcmp(outputs[i].data, expected[i].data, byte_count(&expected[i])))
      fail(signature->outputs[i].name, "is not what one thread computes");
}

static void *use_context(void *arg) {
  pto_context *context = create(arg);
  pto_tensor outputs[MAX_VALUES];
  place places[MAX_VALUES];
  for (int r = 0; r < RUNS; ++r) {
    int given = r % 2;
    for (size_t i = 0; i < signature->output_count; ++i) {
      outputs[i] = expected[i];
      places[i] =
          make_place(byte_count(&expected[i]), element_size(expected[i].dtype));
      outputs[i].data = given ? places[i].data : NULL;
    }
    run(context, outputs);
    compare(outputs);
    for (size_t i = 0; i < signature->output_count; ++i)
      free(places[i].block);
  }
  table->destroy(context);
  return NULL;
}

static void at_once(void *(*use)(void *), void *arg) {
  pthread_t threads[CONTEXTS];
  for (int i = 0; i < CONTEXTS; ++i)
    if (pthread_create(&threads[i], NULL, use, arg) != 0)
      fail("at_once", "no thread");
  for (int i = 0; i < CONTEXTS; ++i)
    pthread_join(threads[i], NULL);
}

static void *use_shared(void *arg) {
  pto_tensor outputs[MAX_VALUES];
  for (int r = 0; r < RUNS; ++r) {
    memset(outputs, 0, sizeof(outputs));
    run(arg, outputs);
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 4)
    fail(argv[0], "MODEL.so THREADS N [short-input | shared-context]");
  const char *fault = argc > 4 ? argv[4] : "";
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(argv[1], dlerror());
  table = dlsym(library, "pto_artifact");
  if (!table)
    fail(argv[1], "was not made by pto-compile");
  signature = &table->model->signature;
  if (signature->input_count > MAX_VALUES ||
      signature->output_count > MAX_VALUES)
    fail(argv[1], "has too many inputs or outputs");
  for (size_t i = 0; i < signature->input_count; ++i)
    make_input(i, atoll(argv[3]), !strcmp(fault, "short-input"));

  pto_options options = {.threads = 1};
  pto_context *first = create(&options);
  memset(expected, 0, sizeof(expected));
  run(first, expected);
  options.threads = atoi(argv[2]);
  if (!strcmp(fault, "shared-context")) {
    pto_context *shared = create(&options);
    at_once(use_shared, shared);
    table->destroy(shared);
  }
  at_once(use_context, &options);
  options.parallel_for = own_loop;
  at_once(use_context, &options);

  table->destroy(first); /* what is in `expected` goes with it */
  for (size_t i = 0; i < signature->input_count; ++i)
    free((char *)inputs[i].data - element_size(inputs[i].dtype));
  dlclose(library);
  return 0;
}
