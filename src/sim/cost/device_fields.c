/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/device_fields.h"

#include "sim/cost/device_attention.h"

#define LENGTH_MAX 16777216
#define SMS_MAX 65535
#define COMPUTE_CAPABILITY_MAX 999
#define KERNELS_MAX 1024
#define HOST_TIME_MAX_S 1.0

static const char *const device_schemas[] = { "longhaul.device/1", "longhaul.device/2", NULL };

#define RESIDUAL(key, when, text)                                                                  \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_DOUBLE, .offset = offsetof(LhFitResiduals, key),            \
        .flags = (when), .min = 0, .max = LH_RESIDUAL_MAX, .description = (text)                   \
    }

/* Relative: 0.02 is 2 %. */
static const LhField residual_fields[] = {
    RESIDUAL(median, LH_FIELD_STATED, "Median over the points that were fitted."),
    RESIDUAL(worst, LH_FIELD_STATED, "Worst of the points that were fitted."),
    RESIDUAL(holdout, LH_FIELD_STATED, "Worst of points that were not fitted."),
    RESIDUAL(spread, 0, "Between the slowest and the fastest rank, over the median, at most."),
    { .name = NULL },
};

#define LENGTH(key, text)                                                                          \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UNIT, .unit = LH_UNIT_COUNT,                                \
        .offset = offsetof(LhKernelRate, key), .min = 1, .max = LENGTH_MAX, .description = (text)  \
    }

#define RESIDUALS(owner)                                                                           \
    {                                                                                              \
        .name = "residuals", .type = LH_FIELD_OBJECT, .offset = offsetof(owner, residuals),        \
        .fields = residual_fields,                                                                 \
        .description = "How far the fit is from what it was made of, relative."                    \
    }

const LhField lh_device_curve_fields[] = {
    { .name = "kernel",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhKernelRate, kernel),
      .flags = LH_FIELD_REQUIRED,
      .description = "A kernel of longhaul, such as attention_fwd." },
    { .name = "mask",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhKernelRate, mask),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_device_masks,
      .description = "Which blocks the curve holds for." },
    { .name = "head_dim",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhKernelRate, head_dim),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_HEAD_DIM_MAX,
      .description = "Head dimension; other ones are interpolated." },
    { .name = "rate",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhKernelRate, rate),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_FLOPS,
      .min = LH_RATE_MIN,
      .max = LH_RATE_MAX,
      .description = "R_inf of R(s) = R_inf / (1 + s0 / s), s the block's length in tokens." },
    { .name = "half_length",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhKernelRate, half_length),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = LENGTH_MAX,
      .description = "s0, the length in tokens at which half of the rate is reached." },
    { .name = "query_half_length",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhKernelRate, query_half_length),
      .min = 0,
      .max = LENGTH_MAX,
      .description = "s1 of R(s, q) = R_inf / (1 + s0 / s + s1 / q), q the tokens of queries of "
                     "the block: what keys cost whoever reads them, on devices whose tiles have "
                     "one row, as processors. Absent: 0." },
    LENGTH(length_min, "Shortest block, in tokens, that the curve was fitted to; beyond it the "
                       "curve is extrapolated. Absent if not stated."),
    LENGTH(length_max, "Longest block that the curve was fitted to, likewise."),
    LH_FIELDS_EVIDENCE(LhKernelRate, from, LH_FIELD_REQUIRED, LH_DEVICE_TEXT_MAX, "the curve",
                       "the curve comes"),
    RESIDUALS(LhKernelRate),
    { .name = NULL },
};

static const LhField traffic_fields[] = {
    { .name = "kernel",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhKernelTraffic, kernel),
      .flags = LH_FIELD_REQUIRED,
      .description = "An elementwise kernel of longhaul, such as merge." },
    { .name = "bandwidth",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhKernelTraffic, bandwidth),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_BANDWIDTH,
      .min = LH_RATE_MIN,
      .max = LH_RATE_MAX,
      .description = "What the kernel reads and writes in a second." },
    LH_FIELDS_EVIDENCE(LhKernelTraffic, from, LH_FIELD_REQUIRED, LH_DEVICE_TEXT_MAX,
                       "the bandwidth", "the bandwidth comes"),
    RESIDUALS(LhKernelTraffic),
    { .name = NULL },
};

static const LhField context_fields[] = {
    { .name = "bytes",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhMemoryContext, bytes),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_BYTES,
      .min = 0,
      .max = 1e18,
      .description = "What context and libraries hold." },
    LH_FIELDS_EVIDENCE(LhMemoryContext, from, LH_FIELD_REQUIRED, LH_DEVICE_TEXT_MAX, "the number",
                       "the number comes"),
    { .name = NULL },
};

static const LhField linear_fields[] = {
    { .name = "efficiency",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhDevice, linear_efficiency),
      .flags = LH_FIELD_REQUIRED,
      .min = LH_EFFICIENCY_MIN,
      .max = 1,
      .description = "Share of the peak that kernels of linear attention reach." },
    LH_FIELDS_EVIDENCE(LhDevice, linear_from, LH_FIELD_REQUIRED, LH_DEVICE_TEXT_MAX, "the number",
                       "the number comes"),
    { .name = NULL },
};

const LhField lh_device_fields[] = {
    { .name = "schema",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhDevice, schema),
      .flags = LH_FIELD_REQUIRED,
      .choices = device_schemas,
      .description = "The format and its version." },
    { .name = "name",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhDevice, name),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "The device's name, equal to the file's." },
    { .name = "description",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhDevice, description),
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "What the device is, in a sentence." },
    { .name = "source",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhDevice, source),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "Where the numbers of this level come from." },
    { .name = "matrix_rate",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, matrix_rate),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_FLOPS,
      .min = LH_RATE_MIN,
      .max = LH_RATE_MAX,
      .description = "Peak of dense 16-bit matrix products." },
    { .name = "matrix_efficiency",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhDevice, matrix_efficiency),
      .flags = LH_FIELD_REQUIRED,
      .min = LH_EFFICIENCY_MIN,
      .max = 1,
      .description = "Share of the peak that large matrix products reach." },
    LH_FIELD_PROVENANCE("matrix_provenance", LhDevice, matrix_provenance, LH_FIELD_REQUIRED,
                        "How far rate times efficiency can be trusted."),
    { .name = "linear_attention",
      .type = LH_FIELD_OBJECT,
      .offset = 0, /* decoded into LhDevice itself */
      .fields = linear_fields,
      .description = "What kernels of linear attention reach. Absent: 0.3 of the peak, which is "
                     "assumed." },
    { .name = "memory_capacity",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, memory_capacity),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_BYTES,
      .min = 1,
      .max = 1e18,
      .description = "Device memory." },
    { .name = "memory_bandwidth",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, memory_bandwidth),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_BANDWIDTH,
      .min = LH_RATE_MIN,
      .max = LH_RATE_MAX,
      .description = "Peak bandwidth of the device memory." },
    { .name = "memory_efficiency",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhDevice, memory_efficiency),
      .flags = LH_FIELD_REQUIRED,
      .min = LH_EFFICIENCY_MIN,
      .max = 1,
      .description = "Share of the peak bandwidth that elementwise kernels reach." },
    LH_FIELD_PROVENANCE("memory_provenance", LhDevice, memory_provenance, LH_FIELD_REQUIRED,
                        "How far bandwidth times efficiency can be trusted."),
    { .name = "memory_context",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhDevice, memory_context),
      .fields = context_fields,
      .description = "Device memory that is not there for programs: what the driver's context and "
                     "libraries such as NCCL hold. Absent: 1.35 GiB, which is assumed." },
    { .name = "sm_count",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhDevice, sm_count),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = SMS_MAX,
      .description = "Streaming multiprocessors." },
    { .name = "compute_capability",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhDevice, compute_capability),
      .min = 0,
      .max = COMPUTE_CAPABILITY_MAX,
      .description = "Of an NVIDIA GPU, times 10: 80 is 8.0. NCCL's model asks for it." },
    LH_FIELD_PROVENANCE("host_provenance", LhDevice, host_provenance, 0,
                        "How far the times of hosts can be trusted; assumed if absent."),
    { .name = "kernel_launch",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, kernel_launch_ps),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_TIME,
      .min = 0,
      .max = HOST_TIME_MAX_S,
      .description = "Host time to issue one operation." },
    { .name = "stream_sync",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, stream_sync_ps),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_TIME,
      .min = 0,
      .max = HOST_TIME_MAX_S,
      .description = "Host time of a device synchronisation." },
    { .name = "tile_rows",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhDevice, tile_rows),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LENGTH_MAX,
      .description = "Query rows of one thread block of the attention kernels." },
    { .name = "tile_order",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhDevice, tile_order),
      .choices = lh_tile_orders,
      .description = "In which order they take them, each by the SM that is free first; default "
                     "linear." },
    { .name = "kernels",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhDevice, kernels),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = KERNELS_MAX,
      .fields = lh_device_curve_fields,
      .element_size = sizeof(LhKernelRate),
      .description =
          "Curves of attention kernels; a kernel without one is timed by the roofline." },
    { .name = "elementwise",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhDevice, elementwise),
      .min = 0,
      .max = KERNELS_MAX,
      .fields = traffic_fields,
      .element_size = sizeof(LhKernelTraffic),
      .description = "Elementwise kernels known one by one; others are timed by the memory." },
    { .name = "attention",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhDevice, attention),
      .min = 0,
      .max = KERNELS_MAX,
      .fields = lh_attention_fields,
      .element_size = sizeof(LhAttentionRow),
      .element_init = lh_attention_init,
      .description = "Attention kernels of libraries by their tiles (longhaul.device/2)." },
    { .name = "attention_kernel",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhDevice, attention_kernel),
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "The library of \"attention\" that attention takes where it has a row. "
                     "Absent: the curves of \"kernels\", and rows for head dimensions that these "
                     "do not have." },
    { .name = NULL },
};
