/*===- pto_abi.h - The types of a compiled model's C interface ---*- C -*-===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Plain C. The header that pto-compile writes beside MODEL.so contains this
 * text, followed by the model's own functions (here for a model named M):
 *
 *   int M_create(const pto_options *options, M_context **context);
 *   int M_run(M_context *context, const pto_tensor *inputs, size_t n,
 *             pto_tensor *outputs, size_t m);
 *   void M_destroy(M_context *context);
 *   const char *M_error(const M_context *context);
 *   const pto_signature *M_signature(void);
 *
 * Any number of contexts may live at once; each is used by one thread at a
 * time. Weights are shared by all.
 *
 *===----------------------------------------------------------------------===*/
#ifndef PTO_ABI_H
#define PTO_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTO_ABI_VERSION 2
#define PTO_MAX_RANK 8

/* What every call returns. M_error tells more. */
enum {
  PTO_OK = 0,
  PTO_INVALID_ARGUMENT = 1, /* count, dtype, rank, shape, null, overlap;
                               sizes that do not fit each other */
  PTO_UNSUPPORTED_CPU = 2,  /* the code needs features that are missing */
  PTO_OUT_OF_MEMORY = 3,
  PTO_BAD_WEIGHTS = 4,  /* MODEL.weights is missing or not this model's */
  PTO_RUNTIME_FAULT = 5 /* an index in the data is out of bounds. No memory out
                           of bounds was touched, but the outputs' contents mean
                           nothing; the context can run again. */
};

/* Element types; the numbers are ONNX's. */
enum {
  PTO_F32 = 1,
  PTO_U8 = 2,
  PTO_I8 = 3,
  PTO_U16 = 4,
  PTO_I16 = 5,
  PTO_I32 = 6,
  PTO_I64 = 7,
  PTO_BOOL = 9, /* one byte, 0 or 1 */
  PTO_F16 = 10,
  PTO_F64 = 11,
  PTO_U32 = 12,
  PTO_U64 = 13,
  PTO_BF16 = 16
};

/* A dense row-major array. Data needs its element's alignment, no more.
 * Output with null data: the context allocates it, it is valid until the
 * context's next run or its end, and dtype, rank and shape are filled in.
 * Output with data: dtype, rank and shape must be what the model gives. */
typedef struct pto_tensor {
  void *data;
  int32_t dtype;
  int32_t rank;
  int64_t shape[PTO_MAX_RANK];
} pto_tensor;

/* Zero-initialise, then set what you need; a null pointer means all zero. */
typedef struct pto_options {
  /* Threads that one run may use, the caller's included. 0: the number of
   * physical cores available, at most what the model was compiled for. */
  int32_t threads;
  int32_t reserved0;
  /* Your own parallel loop (TBB, OpenMP, ...) instead of the built-in pool:
   * calls body(arg, i) once for each i in [0, n) and returns when all are
   * done. */
  void (*parallel_for)(void *user, int64_t n,
                       void (*body)(void *arg, int64_t i), void *arg);
  void *user;
  /* Where MODEL.weights is, if the model has such a file and it is not beside
   * the .so. */
  const char *weights_path;
  int64_t reserved[4];
} pto_options;

/* One input or output. A size of -1 is known only at run time; its name is in
 * dims (null: no names, or "" where there is none), and dims of one name must
 * be equal in all inputs. */
typedef struct pto_value_info {
  const char *name;
  int32_t dtype;
  int32_t rank;
  const int64_t *shape;
  const char *const *dims;
} pto_value_info;

typedef struct pto_signature {
  const char *model;
  size_t input_count;
  size_t output_count;
  const pto_value_info *inputs;
  const pto_value_info *outputs;
} pto_signature;

#ifdef __cplusplus
}
#endif
#endif /* PTO_ABI_H */
