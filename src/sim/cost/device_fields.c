/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/device_fields.h"

#include "program/program.h"
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
    RESIDUAL(median, LH_FIELD_STATED, "Median over the fitted points."),
    RESIDUAL(worst, LH_FIELD_STATED, "Worst of the fitted points."),
    RESIDUAL(holdout, LH_FIELD_STATED, "Worst of the held-out points."),
    RESIDUAL(spread, 0, "Largest (slowest - fastest rank) / median."),
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
        .fields = residual_fields, .description = "Relative errors of the fit."                    \
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
      .description = "Mask of the blocks that the curve applies to." },
    { .name = "head_dim",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhKernelRate, head_dim),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_HEAD_DIM_MAX,
      .description = "Head dimension; others are interpolated." },
    { .name = "rate",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhKernelRate, rate),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_FLOPS,
      .min = LH_RATE_MIN,
      .max = LH_RATE_MAX,
      .description =
          "R_inf of R(s) = R_inf / (1 + s0 / s), s the key length of the block in tokens." },
    { .name = "half_length",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhKernelRate, half_length),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = LENGTH_MAX,
      .description = "s0, the key length in tokens at which half of R_inf is reached." },
    { .name = "query_half_length",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhKernelRate, query_half_length),
      .min = 0,
      .max = LENGTH_MAX,
      .description = "s1 of R(s, q) = R_inf / (1 + s0 / s + s1 / q), q the query length of the "
                     "block in tokens: per-key cost of reading the key block; used for CPUs, whose "
                     "tiles have one row. Default 0." },
    LENGTH(length_min, "Shortest block of the fit, in tokens; shorter ones are extrapolated. "
                       "Absent if not stated."),
    LENGTH(length_max, "Longest block of the fit, likewise."),
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
      .description = "Rate of reads and writes of the kernel." },
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
      .description = "Memory used by context and libraries." },
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
      .description = "Fraction of the peak reached by kernels of linear attention." },
    LH_FIELDS_EVIDENCE(LhDevice, linear_from, LH_FIELD_REQUIRED, LH_DEVICE_TEXT_MAX, "the number",
                       "the number comes"),
    { .name = NULL },
};

static const LhField fp32_fields[] = {
    { .name = "rate",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, fp32_rate),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_FLOPS,
      .min = LH_RATE_MIN,
      .max = LH_RATE_MAX,
      .description = "Rate that large products in fp32 reach." },
    LH_FIELDS_EVIDENCE(LhDevice, fp32_from, LH_FIELD_REQUIRED, LH_DEVICE_TEXT_MAX, "the rate",
                       "the rate comes"),
    { .name = NULL },
};

/* SHARED rows are also those of profiles. */
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
      .description = "Source of the numbers of this level." },
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
      .description = "Fraction of the peak reached by large matrix products." },
    LH_FIELD_PROVENANCE("matrix_provenance", LhDevice, matrix_provenance, LH_FIELD_REQUIRED,
                        "Provenance of rate times efficiency."),
    { .name = "linear_attention",
      .type = LH_FIELD_OBJECT,
      .offset = 0, /* decoded into LhDevice itself */
      .fields = linear_fields,
      .description = "Efficiency of linear attention. Absent: 0.3 of the peak, which is assumed." },
    { .name = "fp32_products",
      .type = LH_FIELD_OBJECT,
      .offset = 0, /* decoded into LhDevice itself */
      .fields = fp32_fields,
      .description = "Products in fp32, without matrix units. Absent: 1/32 of the peak, which is "
                     "assumed." },
    { .name = "memory_capacity",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, memory_capacity),
      .flags = LH_FIELD_REQUIRED,
      .unit = LH_UNIT_BYTES,
      .min = 1,
      .max = 1e18,
      .description = "Capacity of the device memory." },
    { .name = "memory_bandwidth",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, memory_bandwidth),
      .flags = LH_FIELD_REQUIRED | LH_FIELD_SHARED,
      .unit = LH_UNIT_BANDWIDTH,
      .min = LH_RATE_MIN,
      .max = LH_RATE_MAX,
      .description = "Peak bandwidth of the device memory." },
    { .name = "memory_efficiency",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhDevice, memory_efficiency),
      .flags = LH_FIELD_REQUIRED | LH_FIELD_SHARED,
      .min = LH_EFFICIENCY_MIN,
      .max = 1,
      .description = "Fraction of the peak bandwidth reached by elementwise kernels." },
    LH_FIELD_PROVENANCE("memory_provenance", LhDevice, memory_provenance,
                        LH_FIELD_REQUIRED | LH_FIELD_SHARED,
                        "Provenance of bandwidth times efficiency."),
    { .name = "memory_context",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhDevice, memory_context),
      .fields = context_fields,
      .description = "Device memory not available to programs: used by the driver's context and by "
                     "libraries such as NCCL. Absent: 1.35 GiB, which is assumed." },
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
      .description =
          "Compute capability of an NVIDIA GPU, times 10: 80 is 8.0. Used by NCCL's model." },
    LH_FIELD_PROVENANCE("host_provenance", LhDevice, host_provenance, 0,
                        "Provenance of host times; assumed if absent."),
    { .name = "kernel_launch",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, kernel_launch_ps),
      .flags = LH_FIELD_REQUIRED | LH_FIELD_SHARED,
      .unit = LH_UNIT_TIME,
      .min = 0,
      .max = HOST_TIME_MAX_S,
      .description = "Host time to issue one operation." },
    { .name = "stream_sync",
      .type = LH_FIELD_UNIT,
      .offset = offsetof(LhDevice, stream_sync_ps),
      .flags = LH_FIELD_REQUIRED | LH_FIELD_SHARED,
      .unit = LH_UNIT_TIME,
      .min = 0,
      .max = HOST_TIME_MAX_S,
      .description = "Host time of a device synchronisation." },
    { .name = "messages_hold",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhDevice, messages_hold),
      .flags = LH_FIELD_SHARED,
      .min = 0,
      .max = 1,
      .description =
          "Fraction of its speed that a rank loses while it has messages, on CPUs, whose cores "
          "move them. Absent: the SMs held by messages (\"ctas\" of the links)." },
    { .name = "machine_ranks",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhDevice, machine_ranks),
      .flags = LH_FIELD_SHARED,
      .min = 2,
      .max = LH_RANKS_MAX,
      .description = "Number of consecutive ranks that share the cores of one machine, which has "
                     "fewer cores. Absent: each rank has its own cores." },
    { .name = "machine_cores",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhDevice, machine_cores),
      .flags = LH_FIELD_SHARED,
      .min = 1,
      .max = LH_RANKS_MAX - 1,
      .description = "Cores shared by the ranks of a machine." },
    { .name = "tile_rows",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhDevice, tile_rows),
      .flags = LH_FIELD_REQUIRED | LH_FIELD_SHARED,
      .min = 1,
      .max = LENGTH_MAX,
      .description = "Query rows of one thread block of the attention kernels." },
    { .name = "tile_order",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhDevice, tile_order),
      .choices = lh_tile_orders,
      .description =
          "Order in which thread blocks are assigned, each to the first free SM; default linear." },
    { .name = "kernels",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhDevice, kernels),
      .flags = LH_FIELD_REQUIRED | LH_FIELD_SHARED,
      .min = 0,
      .max = KERNELS_MAX,
      .fields = lh_device_curve_fields,
      .element_size = sizeof(LhKernelRate),
      .description =
          "Curves of attention kernels; a kernel without one is timed by the roofline." },
    { .name = "elementwise",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhDevice, elementwise),
      .flags = LH_FIELD_SHARED,
      .min = 0,
      .max = KERNELS_MAX,
      .fields = traffic_fields,
      .element_size = sizeof(LhKernelTraffic),
      .description =
          "Elementwise kernels with their own bandwidth; others use that of the memory." },
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
      .description = "Library whose rows of \"attention\" are used where it has any. Absent: the "
                     "curves of \"kernels\", and rows for head dimensions without curves." },
    { .name = NULL },
};
