/*
 * Devices: what one GPU does in a second, from a file. A device is a roofline (peak rates and
 * memory bandwidth) and, where measurements were published or made, a fitted curve per attention
 * kernel. Clocks, power limits and thermal throttling are left out.
 */
#include "sim/cost/device.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "sim/cost/device_attention.h"

#include <string.h>

#define LENGTH_MAX 16777216
#define SMS_MAX 65535
#define COMPUTE_CAPABILITY_MAX 999
#define KERNELS_MAX 1024
#define HOST_TIME_MAX_S 1.0
/* No measurement is published; LASP's and flash-linear-attention's throughput suggests a quarter to
 * a third. */
#define LINEAR_EFFICIENCY 0.3

static const char *const device_schemas[] = { "longhaul.device/1", "longhaul.device/2", NULL };

const char *const lh_device_masks[] = { "full", "causal", NULL };
#define RESIDUAL(key, text)                                                                        \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_DOUBLE, .offset = offsetof(LhFitResiduals, key), .min = 0,  \
        .max = LH_RESIDUAL_MAX, .description = (text)                                              \
    }

/* Relative: 0.02 is 2 %. */
static const LhField residual_fields[] = {
    RESIDUAL(median, "Median over the points that were fitted."),
    RESIDUAL(worst, "Worst of the points that were fitted."),
    RESIDUAL(holdout, "Worst of points that were not fitted."),
    RESIDUAL(spread, "Between the slowest and the fastest rank, over the median, at most."),
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

static const LhField kernel_fields[] = {
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
    { .name = "provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhKernelRate, provenance),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_provenance_names,
      .description = "How far the curve can be trusted." },
    { .name = "source",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhKernelRate, source),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "Where the curve comes from." },
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
    { .name = "provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhKernelTraffic, provenance),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_provenance_names,
      .description = "How far the bandwidth can be trusted." },
    { .name = "source",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhKernelTraffic, source),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "Where the bandwidth comes from." },
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
    { .name = "provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhMemoryContext, provenance),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_provenance_names,
      .description = "How far the number can be trusted." },
    { .name = "source",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhMemoryContext, source),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "Where the number comes from." },
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
    { .name = "provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhDevice, linear_provenance),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_provenance_names,
      .description = "How far the number can be trusted." },
    { .name = "source",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhDevice, linear_source),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = LH_DEVICE_TEXT_MAX,
      .description = "Where the number comes from." },
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
    { .name = "matrix_provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhDevice, matrix_provenance),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_provenance_names,
      .description = "How far rate times efficiency can be trusted." },
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
    { .name = "memory_provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhDevice, memory_provenance),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_provenance_names,
      .description = "How far bandwidth times efficiency can be trusted." },
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
    { .name = "host_provenance",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhDevice, host_provenance),
      .choices = lh_provenance_names,
      .description = "How far the times of hosts can be trusted; assumed if absent." },
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
      .fields = kernel_fields,
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

static const LhKernelRate *
rate_at(const LhDevice *device, guint index)
{
    return &g_array_index(device->kernels, LhKernelRate, index);
}

static bool
same_key(const LhKernelRate *a, const LhKernelRate *b)
{
    return strcmp(a->kernel, b->kernel) == 0 && a->mask == b->mask && a->head_dim == b->head_dim;
}

static bool
fail_unknown_kernel(const LhJson *json, const char *path, const char *name, GError **error)
{
    const char *names[LH_KERNELS_COUNT + 1] = { NULL };
    g_autofree char *listed = NULL;
    g_autofree char *advice = NULL;
    const char *nearest;

    for (int i = 0; i < LH_KERNELS_COUNT; i++)
        names[i] = lh_kernels[i]->name;
    nearest = lh_nearest_word(name, names);
    if (nearest != NULL)
        advice = g_strdup_printf("did you mean \"%s\"? ", nearest);
    listed = g_strjoinv(", ", (char **)names);
    return lh_json_error(json, path, error, "unknown kernel \"%.60s\"; %sallowed: %s", name,
                         advice != NULL ? advice : "", listed);
}

bool
lh_device_check_curve(const LhJson *json, const GArray *kernels, guint index, GError **error)
{
    const LhKernelRate *rate = &g_array_index(kernels, LhKernelRate, index);
    g_autofree char *path = g_strdup_printf("kernels[%u]", index);

    for (guint i = 0; i < index; i++) {
        if (same_key(rate, &g_array_index(kernels, LhKernelRate, i)))
            return lh_json_error(json, path, error,
                                 "\"%s\" is the second curve for kernel %s, mask %s, head_dim "
                                 "%" G_GUINT64_FORMAT "; the first is \"kernels[%u]\"",
                                 path, rate->kernel, lh_device_masks[rate->mask], rate->head_dim,
                                 i);
    }
    return true;
}

bool
lh_device_check_traffic(const LhJson *json, const GArray *elementwise, guint index, GError **error)
{
    const char *kernel = g_array_index(elementwise, LhKernelTraffic, index).kernel;
    g_autofree char *path = g_strdup_printf("elementwise[%u]", index);

    for (guint i = 0; i < index; i++) {
        if (strcmp(kernel, g_array_index(elementwise, LhKernelTraffic, i).kernel) == 0)
            return lh_json_error(json, path, error,
                                 "\"%s\" is the second bandwidth for kernel %s; the first is "
                                 "\"elementwise[%u]\"",
                                 path, kernel, i);
    }
    return true;
}

static bool
check_kernel(const LhJson *json, const LhDevice *device, guint index, GError **error)
{
    const LhKernelRate *rate = rate_at(device, index);
    g_autofree char *path = g_strdup_printf("kernels[%u]", index);
    g_autofree char *name_path = g_strconcat(path, ".kernel", NULL);
    g_autofree char *rate_path = g_strconcat(path, ".rate", NULL);

    if (lh_kernel_find(rate->kernel) == LH_KERNELS_COUNT)
        return fail_unknown_kernel(json, name_path, rate->kernel, error);
    if (rate->rate > device->matrix_rate) {
        g_autofree char *found = lh_format_flops(rate->rate);
        g_autofree char *peak = lh_format_flops(device->matrix_rate);

        return lh_json_error(json, rate_path, error,
                             "\"%s\" is %s, above the device's \"matrix_rate\" %s", rate_path,
                             found, peak);
    }
    return lh_device_check_curve(json, device->kernels, index, error);
}

static bool
check_traffic(const LhJson *json, const LhDevice *device, guint index, GError **error)
{
    const char *name = g_array_index(device->elementwise, LhKernelTraffic, index).kernel;
    g_autofree char *path = g_strdup_printf("elementwise[%u].kernel", index);

    if (lh_kernel_find(name) == LH_KERNELS_COUNT)
        return fail_unknown_kernel(json, path, name, error);
    return lh_device_check_traffic(json, device->elementwise, index, error);
}

static LhDevice *
read_device(const LhJson *json, GError **error)
{
    g_autoptr(LhDevice) device = g_new0(LhDevice, 1);

    device->host_provenance = LH_PROVENANCE_ASSUMED;
    if (!lh_json_decode(json, lh_device_fields, device, false, error))
        return NULL;
    for (guint i = 0; i < device->kernels->len; i++) {
        if (!check_kernel(json, device, i, error))
            return NULL;
    }
    for (guint i = 0; device->elementwise != NULL && i < device->elementwise->len; i++) {
        if (!check_traffic(json, device, i, error))
            return NULL;
    }
    if (!lh_attention_check(json, device, error))
        return NULL;
    device->sha256 = g_strdup(lh_json_sha256(json));
    return g_steal_pointer(&device);
}

LhDevice *
lh_device_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : read_device(json, error);
}

LhDevice *
lh_device_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("devices", name, error);
    g_autoptr(LhJson) json = path == NULL ? NULL : lh_json_load(path, error);

    return json == NULL ? NULL : read_device(json, error);
}

void
lh_device_drop_curve(LhDevice *device, guint curve)
{
    lh_json_clear(kernel_fields, &g_array_index(device->kernels, LhKernelRate, curve));
    g_array_remove_index(device->kernels, curve);
}

void
lh_device_free(LhDevice *device)
{
    if (device == NULL)
        return;
    lh_json_clear(lh_device_fields, device);
    g_free(device->sha256);
    g_free(device);
}

/* `kernel` if the device has curves for it, else the first with curves and the same effect, or
 * NULL. */
static const char *
find_curves(const LhDevice *device, const char *kernel)
{
    const LhKernelId id = lh_kernel_find(kernel);
    const char *sibling = NULL;

    for (guint i = 0; i < device->kernels->len; i++) {
        const char *name = rate_at(device, i)->kernel;

        if (strcmp(name, kernel) == 0)
            return name;
        if (sibling == NULL && id != LH_KERNELS_COUNT &&
            lh_kernels[lh_kernel_find(name)]->effect == lh_kernels[id]->effect)
            sibling = name;
    }
    return sibling;
}

/*
 * The rows of `kernel` and `mask` with the nearest head dimension at or below, and at or above,
 * `head_dim`; NULL where there is none.
 */
static void
find_neighbours(const LhDevice *device, const char *kernel, int mask, uint64_t head_dim,
                const LhKernelRate **below, const LhKernelRate **above)
{
    *below = NULL;
    *above = NULL;
    for (guint i = 0; i < device->kernels->len; i++) {
        const LhKernelRate *r = rate_at(device, i);

        if (r->mask != mask || strcmp(r->kernel, kernel) != 0)
            continue;
        if (r->head_dim <= head_dim && (*below == NULL || r->head_dim > (*below)->head_dim))
            *below = r;
        if (r->head_dim >= head_dim && (*above == NULL || r->head_dim < (*above)->head_dim))
            *above = r;
    }
}

static LhKernelRate
interpolate(const LhKernelRate *below, const LhKernelRate *above, uint64_t head_dim)
{
    const double share =
        (double)(head_dim - below->head_dim) / (double)(above->head_dim - below->head_dim);
    LhKernelRate rate = *below;

    rate.head_dim = head_dim;
    rate.rate += share * (above->rate - below->rate);
    rate.half_length += share * (above->half_length - below->half_length);
    rate.query_half_length += share * (above->query_half_length - below->query_half_length);
    rate.provenance = MAX(below->provenance, above->provenance);
    rate.length_min = MAX(below->length_min, above->length_min);
    rate.length_max = MIN(below->length_max, above->length_max);
    rate.residuals.worst = MAX(below->residuals.worst, above->residuals.worst);
    rate.residuals.holdout = MAX(below->residuals.holdout, above->residuals.holdout);
    return rate;
}

bool
lh_device_rate(const LhDevice *device, const char *kernel, bool causal, uint32_t head_dim,
               LhKernelRate *rate)
{
    const char *name = find_curves(device, kernel);
    const int mask = causal ? 1 : 0;
    const LhKernelRate *below;
    const LhKernelRate *above;

    if (name == NULL)
        return false;
    find_neighbours(device, name, mask, head_dim, &below, &above);
    if (below == NULL && above == NULL)
        find_neighbours(device, name, 1 - mask, head_dim, &below, &above);
    g_assert(below != NULL || above != NULL);
    if (below == NULL || above == NULL)
        *rate = below != NULL ? *below : *above;
    else if (below == above)
        *rate = *below;
    else
        *rate = interpolate(below, above, head_dim);
    if (strcmp(name, kernel) != 0) {
        rate->provenance = MAX(rate->provenance, LH_PROVENANCE_FITTED);
        rate->residuals = (LhFitResiduals){ 0 };
    }
    if (rate->mask != mask || rate->head_dim != head_dim)
        rate->provenance = LH_PROVENANCE_ASSUMED;
    return true;
}

const LhKernelTraffic *
lh_device_traffic(const LhDevice *device, const char *kernel)
{
    for (guint i = 0; device->elementwise != NULL && i < device->elementwise->len; i++) {
        const LhKernelTraffic *row = &g_array_index(device->elementwise, LhKernelTraffic, i);

        if (strcmp(row->kernel, kernel) == 0)
            return row;
    }
    return NULL;
}

double
lh_device_linear_efficiency(const LhDevice *device)
{
    return device->linear_efficiency > 0 ? device->linear_efficiency : LINEAR_EFFICIENCY;
}

uint64_t
lh_device_context_bytes(const LhDevice *device)
{
    return device->memory_context.source != NULL ? device->memory_context.bytes
                                                 : LH_MEMORY_CONTEXT_BYTES;
}

uint64_t
lh_device_usable_bytes(const LhDevice *device, double margin)
{
    const uint64_t capacity = device->memory_capacity;
    const uint64_t margin_bytes = (uint64_t)(margin * (double)capacity);
    const uint64_t context = lh_device_context_bytes(device);

    g_assert(margin >= 0 && margin <= 1);
    return capacity - MIN(capacity, context) - MIN(capacity - MIN(capacity, context), margin_bytes);
}
