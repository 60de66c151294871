/*===- pto_artifact.h - What the compiler writes, what tools read -*- C -*-===*
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The inside of an artifact. pto-compile emits one pto_model per artifact
 * (lowering/main/Describe.cpp mirrors these structs field by field) and the
 * model's main function; artifact.c does the rest. The exported table
 * `pto_artifact` lets pto-run use an artifact without knowing its prefix.
 *
 *===----------------------------------------------------------------------===*/
#ifndef PTO_TARGETS_CPU_RUNTIME_PTO_ARTIFACT_H
#define PTO_TARGETS_CPU_RUNTIME_PTO_ARTIFACT_H

#include "pto_abi.h"
#include "pto_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pto_context pto_context;

/* One run, as the generated main sees it. Generated code knows the offsets of
 * these fields (lowering/main/Abi.h). */
typedef struct pto_call {
  const pto_tensor *inputs; /* offset 0 */
  pto_tensor *outputs;      /* 8: shapes filled in by main, data by prepare */
  const char *weights;      /* 16 */
  char *arena;              /* 24: set by pto_prepare */
  pto_runtime *runtime;     /* 32 */
  pto_context *context;     /* 40 */
  int32_t status; /* of the run so far; once set, kernels are skipped */
} pto_call;

typedef void (*pto_kernel)(void *const *args, const int64_t *dims,
                           pto_runtime *runtime);

/* One kernel call, in order; version after version. */
typedef struct pto_step {
  const char *name; /* the kernel's */
  double flops;     /* 0: unknown */
  double bytes;     /* read and written at least once; 0: unknown */
} pto_step;

/* The model's code for some shapes of its inputs. A run takes the first version
 * that fits. */
typedef struct pto_version {
  /* The inputs' sizes, one input after the other; -1: any. */
  const int64_t *shapes;
  void (*main)(pto_call *call); /* leaves its status in the call */
  uint64_t first_step;
  uint64_t step_count;
} pto_version;

typedef struct pto_model {
  pto_signature signature;
  uint64_t step_count; /* of all versions */
  const pto_step *steps;
  uint64_t version_count;
  const pto_version *versions; /* special ones first */
  const char *weights;         /* in this file, or null */
  const char *weights_file;    /* name of the file beside the .so, or null */
  uint64_t weights_size;
  uint64_t weights_id; /* hash of the contents; the file's header has it too */
  uint64_t features;   /* mask over pto_features.h */
  uint64_t threads;    /* limit that the code was compiled for */
  const char *target;  /* for people: "cpu x86-64-v3" */
  const char *version; /* pto's and LLVM's */
} pto_model;

/* Header of MODEL.weights; the data follows, from offset 64. */
typedef struct pto_weights_header {
  char magic[8]; /* "PTOWGHT1" */
  uint64_t size; /* of the data */
  uint64_t id;
  uint64_t zero[5];
} pto_weights_header;

/* Called by main before pto_prepare: the run ends with `text` unless `holds`.
 */
void pto_require(pto_call *call, int32_t holds, const char *text);

/* Called by main after the kernels. `worst`: an index out of bounds that the
 * kernels met (and replaced by one in bounds), or PTO_NO_BAD_INDEX. */
#define PTO_NO_BAD_INDEX INT64_MAX
void pto_check_index(pto_call *call, const int64_t *worst, const char *text);

/* Called by main, once the shapes are known: checks or allocates the outputs
 * and the arena. Main goes on only if the result is PTO_OK. */
int pto_prepare(pto_call *call, int64_t arena_bytes);

/* Called by main for each kernel. No result, so that calls inside loops need
 * no way out. */
void pto_invoke(pto_call *call, int64_t step, pto_kernel kernel,
                void *const *args, const int64_t *dims);

/* Called by main to fill or pass on a value that no kernel computes. */
void pto_copy(pto_call *call, void *to, const void *from, int64_t bytes);

int pto_create(const pto_model *model, const pto_options *options,
               pto_context **context);
int pto_run(pto_context *context, const pto_tensor *inputs, size_t n,
            pto_tensor *outputs, size_t m);
void pto_destroy(pto_context *context);
const char *pto_error(const pto_context *context);
/* Adds each step's nanoseconds to ns[step] from now on; null: stop. */
void pto_profile(pto_context *context, uint64_t *ns);
uint64_t pto_arena_bytes(const pto_context *context);
int32_t pto_threads(const pto_context *context);
/* The version that the last run took; -1: none. */
int32_t pto_version_used(const pto_context *context);

/* The exported symbol `pto_artifact`. */
typedef struct pto_artifact_table {
  uint64_t abi_version;
  const pto_model *model;
  int (*create)(const pto_model *, const pto_options *, pto_context **);
  int (*run)(pto_context *, const pto_tensor *, size_t, pto_tensor *, size_t);
  void (*destroy)(pto_context *);
  const char *(*error)(const pto_context *);
  void (*profile)(pto_context *, uint64_t *);
  uint64_t (*arena_bytes)(const pto_context *);
  int32_t (*threads)(const pto_context *);
  int32_t (*version_used)(const pto_context *);
} pto_artifact_table;

#ifdef __cplusplus
}
#endif
#endif
