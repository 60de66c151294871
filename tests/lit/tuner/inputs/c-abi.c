/* A caller that has nothing of pto but the generated header. */
#include "small.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);           \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static pto_tensor tensor(void *data, int32_t dtype, int32_t rank, int64_t d0,
                         int64_t d1) {
  pto_tensor t = {0};
  t.data = data;
  t.dtype = dtype;
  t.rank = rank;
  t.shape[0] = d0;
  t.shape[1] = d1;
  return t;
}

/* Runs many times with values of its own; a mix-up between contexts shows. */
static void *use_context(void *arg) {
  float scale = *(float *)arg;
  small_net_context *context;
  CHECK(small_net_create(NULL, &context) == PTO_OK);
  for (int run = 0; run < 1000; ++run) {
    float x[6], a = scale + (float)run;
    int32_t k[4] = {run, 1, 2, 3};
    for (int i = 0; i < 6; ++i)
      x[i] = a * (float)(i + 1);
    pto_tensor in[2] = {tensor(x, PTO_F32, 2, 2, 3),
                        tensor(k, PTO_I32, 1, 4, 0)};
    pto_tensor out[3];
    memset(out, 0, sizeof(out));
    CHECK(small_net_run(context, in, 2, out, 3) == PTO_OK);
    const float *y = out[0].data;
    CHECK(out[0].rank == 2 && out[0].shape[0] == 2 && out[0].shape[1] == 4);
    CHECK(y[0] == a && y[1] == 2 * a && y[2] == 0 && y[3] == 6 * a);
    CHECK(y[4] == 4 * a && y[5] == 5 * a && y[6] == 0 && y[7] == 15 * a);
    CHECK(((int32_t *)out[1].data)[0] == run && out[1].dtype == PTO_I32);
    CHECK(((float *)out[2].data)[1] == -2.5f);
  }
  small_net_destroy(context);
  return NULL;
}

static void two_contexts(void) {
  pthread_t threads[2];
  float scales[2] = {1, 1000};
  for (int i = 0; i < 2; ++i)
    CHECK(pthread_create(&threads[i], NULL, use_context, &scales[i]) == 0);
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], NULL);
}

/* Buffers at odd places, outputs given by the caller. */
static void own_buffers(small_net_context *context) {
  static char memory[512];
  float *x = (float *)(memory + 4), *y = (float *)(memory + 100);
  int32_t *k = (int32_t *)(memory + 204), *k_out = (int32_t *)(memory + 308);
  for (int i = 0; i < 6; ++i)
    x[i] = 1;
  k[3] = 77;
  pto_tensor in[2] = {tensor(x, PTO_F32, 2, 2, 3), tensor(k, PTO_I32, 1, 4, 0)};
  pto_tensor out[3] = {tensor(y, PTO_F32, 2, 2, 4),
                       tensor(k_out, PTO_I32, 1, 4, 0),
                       tensor(NULL, 0, 0, 0, 0)};
  CHECK(small_net_run(context, in, 2, out, 3) == PTO_OK);
  CHECK(out[0].data == y && y[3] == 3 && y[2] == 0);
  CHECK(k_out[3] == 77);
  CHECK(((float *)out[2].data)[0] == 2.5f);

  out[0].data = x;
  CHECK(small_net_run(context, in, 2, out, 3) == PTO_INVALID_ARGUMENT);
  puts(small_net_error(context));
  out[0] = tensor(y, PTO_F32, 2, 4, 2);
  CHECK(small_net_run(context, in, 2, out, 3) == PTO_INVALID_ARGUMENT);
  puts(small_net_error(context));
}

static void bad_calls(small_net_context *context) {
  float x[6] = {0};
  int32_t k[5] = {0};
  pto_tensor good[2] = {tensor(x, PTO_F32, 2, 2, 3),
                        tensor(k, PTO_I32, 1, 4, 0)};
  pto_tensor out[3], in[2];
  memset(out, 0, sizeof(out));
#define REFUSED(change)                                                        \
  memcpy(in, good, sizeof(in));                                                \
  change;                                                                      \
  CHECK(small_net_run(context, in, 2, out, 3) == PTO_INVALID_ARGUMENT);        \
  puts(small_net_error(context));
  REFUSED(in[0].dtype = PTO_F64)
  REFUSED(in[0].rank = 1)
  REFUSED(in[0].shape[1] = 4)
  REFUSED(in[1].shape[0] = -4)
  REFUSED(in[1].data = NULL)
  REFUSED(in[1].data = (char *)k + 1)
  CHECK(small_net_run(context, good, 1, out, 3) == PTO_INVALID_ARGUMENT);
  puts(small_net_error(context));
  CHECK(small_net_run(NULL, good, 2, out, 3) == PTO_INVALID_ARGUMENT);
  CHECK(small_net_run(context, good, 2, out, 3) == PTO_OK);
  CHECK(small_net_error(context)[0] == 0);
}

static void my_loop(void *user, int64_t n, void (*body)(void *, int64_t),
                    void *arg) {
  ++*(int *)user;
  for (int64_t i = 0; i < n; ++i)
    body(arg, i);
}

int main(void) {
  const pto_signature *signature = small_net_signature();
  printf("%s: %zu inputs, %zu outputs, x is %lldx%lld\n", signature->model,
         signature->input_count, signature->output_count,
         (long long)signature->inputs[0].shape[0],
         (long long)signature->inputs[0].shape[1]);
  two_contexts();
  pto_options options = {0};
  int loops = 0;
  options.parallel_for = my_loop;
  options.user = &loops;
  small_net_context *context;
  CHECK(small_net_create(&options, &context) == PTO_OK);
  own_buffers(context);
  bad_calls(context);
  small_net_destroy(context);

  options.threads = -1;
  CHECK(small_net_create(&options, &context) == PTO_INVALID_ARGUMENT);
  puts(small_net_error(context));
  small_net_destroy(context);
  small_net_destroy(NULL);
  puts("done");
  return 0;
}
