/*
 * How a kernel is called with real data. Plain C: shared with device code.
 *
 * A slot lies in memory as `parts` blocks of part_bytes each, one after another; a part holds the tensors of its kind in a
 * fixed order, each contiguous, token-major within a sequence (B sequences, n tokens of the part):
 *   q, o, do, dq   [B][n][h][d]
 *   kv, dkv        k [B][n][g][d], then v likewise
 *   acc            o [B][n][h][d] of the slot's element size, then fp32 statistics [B][n][h]: m and l, or lse alone
 *   lse, delta     [B][n][h] fp32
 *   state, dstate  [B][h][d][d] fp32, row k, column v
 */
#pragma once

#include "kernels/kernel.h"

#include <stdint.h>

/* Code, name, message. */
#define LH_STATUS_MAP(X)                                                                           \
    X(OK, "ok", "no error")                                                                        \
    X(UNSUPPORTED, "unsupported", "the kernel has no implementation for this call")                \
    X(OUT_OF_MEMORY, "out of memory", "a device allocation failed")                                \
    X(DEVICE, "device", "the device reported an error")

enum lh_status {
#define LH_STATUS_ENUM(code, name, message) LH_STATUS_##code,
    LH_STATUS_MAP(LH_STATUS_ENUM)
#undef LH_STATUS_ENUM
};

/* The type of the principal tensor of an operand; statistics are always fp32. */
enum lh_element {
    LH_ELEMENT_FP32,
    LH_ELEMENT_BF16,
    LH_ELEMENT_FP16,
    LH_ELEMENT_FP64, /* references only */
};

/* Parts [0, parts) of an operand. */
typedef struct {
    unsigned char *data; /* first part */
    uint32_t parts;
    uint64_t part_bytes; /* from one part to the next */
    enum lh_element element;
} LhView;

/*
 * One call: operands in the kernel's order. Rows of a part: args->nq / parts for operands of queries, args->nk / parts
 * for operands of keys. The kernel may use @scratch (at least lh_kernel_scratch_bytes of the call), and nothing else.
 */
typedef struct {
    const LhKernelArgs *args;
    LhView operands[LH_KERNEL_OPERANDS_MAX];
    void *scratch;
} LhCall;

typedef enum lh_status (*LhKernelRun)(const LhCall *call);
