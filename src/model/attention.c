/*
 * Names of element types.
 */
#include "model/attention.h"

#include <stddef.h>

const char *const lh_dtype_names[] = {
    [LH_DTYPE_BF16] = "bf16",
    [LH_DTYPE_FP16] = "fp16",
    [LH_DTYPE_FP32] = "fp32",
    NULL,
};
