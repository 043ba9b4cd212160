/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of tensor kinds.
 */
#include "kernels/tensor.h"

#include <stddef.h>

const char *const lh_tensor_names[] = {
    [LH_TENSOR_Q] = "q",
    [LH_TENSOR_KV] = "kv",
    [LH_TENSOR_ACC] = "acc",
    [LH_TENSOR_OUT] = "out",
    [LH_TENSOR_O] = "o",
    [LH_TENSOR_LSE] = "lse",
    [LH_TENSOR_DO] = "do",
    [LH_TENSOR_DELTA] = "delta",
    [LH_TENSOR_DQ] = "dq",
    [LH_TENSOR_DKV] = "dkv",
    [LH_TENSOR_STATE] = "state",
    [LH_TENSOR_DSTATE] = "dstate",
    [LH_TENSOR_HIDDEN] = "hidden",
    [LH_TENSOR_WEIGHT] = "weight",
    [LH_TENSOR_K] = "k",
    [LH_TENSOR_V] = "v",
    [LH_TENSOR_DK] = "dk",
    [LH_TENSOR_DV] = "dv",
    [LH_TENSOR_SCORES] = "scores",
    [LH_TENSOR_PROBS] = "probs",
    [LH_TENSOR_DSCORES] = "dscores",
    [LH_TENSOR_TOKENS] = "tokens",
    [LH_TENSOR_GRADIENT] = "gradient",
    [LH_TENSOR_MASTER] = "master",
    [LH_TENSOR_MOMENTS] = "moments",
    [LH_TENSOR_NUMBERS] = "numbers",
    NULL,
};
