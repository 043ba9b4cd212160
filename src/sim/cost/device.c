/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: the performance of one GPU, from a file. A device is a roofline (peak rates and memory
 * bandwidth) and, where measurements exist, a fitted curve per attention kernel. Not modelled:
 * clocks, power limits and thermal throttling.
 */
#include "sim/cost/device.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "sim/cost/device_attention.h"
#include "sim/cost/device_fields.h"

#include <string.h>

/* An A100 and an H100 have a sixteenth and a fifteenth of their 16-bit peak outside matrix units;
 * an H100 reaches half of that (devices/h100-sxm.json). */
#define FP32_SHARE (1 / 32.0)
/* No measurement is published; the throughput of LASP and flash-linear-attention suggests a quarter
 * to a third. */
#define LINEAR_EFFICIENCY 0.3

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

bool
lh_device_check_machine(const LhJson *json, const LhDevice *device, GError **error)
{
    if (device->machine_ranks == 0 && device->machine_cores == 0)
        return true;
    if (device->machine_ranks == 0 || device->machine_cores == 0)
        return lh_json_error(json, device->machine_ranks == 0 ? "machine_cores" : "machine_ranks",
                             error, "\"machine_ranks\" and \"machine_cores\" go together");
    return device->machine_cores < device->machine_ranks ||
           lh_json_error(json, "machine_cores", error,
                         "\"machine_cores\" must be below \"machine_ranks\", %" G_GUINT64_FORMAT
                         ": with a core for each rank, nothing is shared",
                         device->machine_ranks);
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
    if (!lh_device_check_machine(json, device, error) || !lh_attention_check(json, device, error))
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
    lh_json_clear(lh_device_curve_fields, &g_array_index(device->kernels, LhKernelRate, curve));
    g_array_remove_index(device->kernels, curve);
}

void
lh_device_free(LhDevice *device)
{
    if (device == NULL)
        return;
    lh_json_clear(lh_device_fields, device);
    g_free(device->sha256);
    g_free(device->profile_source);
    g_free(device);
}

/* `kernel` if the device has curves for it, else the first kernel with curves and the same effect,
 * or NULL. */
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
    rate.from.provenance = MAX(below->from.provenance, above->from.provenance);
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
        rate->from.provenance = MAX(rate->from.provenance, LH_PROVENANCE_FITTED);
        rate->residuals = (LhFitResiduals){ 0 };
    }
    if (rate->mask != mask || rate->head_dim != head_dim)
        rate->from.provenance = LH_PROVENANCE_ASSUMED;
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

void
lh_device_use_library(LhDevice *device, const char *library)
{
    char *name = g_strdup(library);

    g_free(device->attention_kernel);
    device->attention_kernel = name;
}

double
lh_device_linear_efficiency(const LhDevice *device)
{
    return device->linear_efficiency > 0 ? device->linear_efficiency : LINEAR_EFFICIENCY;
}

uint64_t
lh_device_context_bytes(const LhDevice *device)
{
    return device->memory_context.from.source != NULL ? device->memory_context.bytes
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

double
lh_device_fp32_rate(const LhDevice *device)
{
    return device->fp32_rate > 0 ? device->fp32_rate : FP32_SHARE * device->matrix_rate;
}
