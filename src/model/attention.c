/* SPDX-License-Identifier: Apache-2.0 */
#include "model/attention.h"

#include <math.h>
#include <stddef.h>

const char *const lh_dtype_names[] = {
    [LH_DTYPE_BF16] = "bf16",
    [LH_DTYPE_FP16] = "fp16",
    [LH_DTYPE_FP32] = "fp32",
    [LH_DTYPE_INT8] = "int8",
    NULL,
};

const char *const lh_activation_names[] = {
    [LH_DTYPE_BF16] = "bf16",
    [LH_DTYPE_FP16] = "fp16",
    [LH_DTYPE_FP32] = "fp32",
    NULL,
};

double
lh_attention_scale(double scale, uint32_t head_dim)
{
    return scale != 0 ? scale : 1 / sqrt(head_dim);
}
