/* Calibration; see the header. What is measured is in runtime/measure.c, how it is fitted in
 * runtime/fit.c. */
#include "plan/calibrate.h"

#include "base/error.h"
#include "base/jsonw.h"
#include "kernels/cpu/cpu.h"
#include "program/holding.h"
#include "runtime/fit.h"
#include "runtime/pin.h"

#include <math.h>
#include <string.h>

#define HEADS 2
#define TRAFFIC_HEADS 4
#define TRAFFIC_HEAD_DIM 64
#define POINTS_MAX 16
#define TRANSFER_REPEATS_MAX 3

typedef struct {
    uint64_t length;
    bool holdout;
} Length;

static const Length lengths_full[] = { { 64, false },  { 128, false }, { 192, true },
                                       { 256, false }, { 512, false }, { 768, true },
                                       { 1024, false } };
static const Length lengths_quick[] = {
    { 128, false }, { 256, false }, { 384, true }, { 512, false }
};
static const uint32_t head_dims[] = { 64, 128 };                 /* the first one alone if quick */
static const uint64_t traffic_rows[] = { 128, 512, 2048, 1024 }; /* the last one is held out */
static const uint64_t transfer_bytes[] = { 4 << 10, 16 << 10, 64 << 10, 256 << 10,
                                           1 << 20, 4 << 20,  16 << 20 };

static void
tell(const LhCalibrateParams *p, const char *what)
{
    if (p->progress != NULL)
        p->progress(p->progress_data, what);
}

static LhFitResiduals
residuals_of(const LhResiduals *r)
{
    return (LhFitResiduals){ .median = r->median, .worst = r->worst, .holdout = r->holdout };
}

/* ---- attention ---- */

/* A block of its own: most schedules add blocks up afterwards. */
static LhKernelArgs
attention_args(uint64_t n, bool causal, uint32_t head_dim)
{
    return (LhKernelArgs){ .pairs = causal ? n * (n + 1) / 2 : n * n,
                           .nq = n,
                           .nk = n,
                           .batch = 1,
                           .heads = HEADS,
                           .groups = HEADS,
                           .head_dim = head_dim,
                           .mask = causal ? LH_MASK_CAUSAL : LH_MASK_FULL,
                           .first = true };
}

static bool
fit_rate(const LhCalibrateParams *p, LhKernelId id, LhKernelRate *rate, GError **error)
{
    const LhKernel *kernel = lh_kernels[id];
    const Length *lengths = p->quick ? lengths_quick : lengths_full;
    const size_t count = p->quick ? G_N_ELEMENTS(lengths_quick) : G_N_ELEMENTS(lengths_full);
    LhRatePoint points[POINTS_MAX];
    LhResiduals residuals;

    for (size_t i = 0; i < count; i++) {
        const LhKernelArgs args =
            attention_args(lengths[i].length, rate->mask == 1, (uint32_t)rate->head_dim);

        points[i] = (LhRatePoint){ .length = (double)lengths[i].length,
                                   .flops = (double)kernel->flops(&args),
                                   .holdout = lengths[i].holdout };
        if (!lh_measure_kernel(&p->measure, id, &args, p->dtype, &points[i].seconds, error))
            return false;
    }
    if (!lh_fit_rate(points, count, &rate->rate, &rate->half_length, &residuals)) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO, "kernel %s: no curve fits what was measured",
                    kernel->name);
        return false;
    }
    rate->length_min = lengths[0].length;
    rate->length_max = lengths[count - 1].length;
    rate->residuals = residuals_of(&residuals);
    return true;
}

static bool
measure_rates(const LhCalibrateParams *p, LhKernelId id, LhCalibration *c, GError **error)
{
    const LhKernel *kernel = lh_kernels[id];
    const size_t dims = p->quick ? 1 : G_N_ELEMENTS(head_dims);

    for (size_t d = 0; d < dims; d++) {
        for (int mask = 0; mask < 2; mask++) {
            LhKernelRate rate = { .mask = mask,
                                  .head_dim = head_dims[d],
                                  .provenance = LH_PROVENANCE_FITTED };
            g_autofree char *what = g_strdup_printf("%s, %s mask, d %u", kernel->name,
                                                    mask == 1 ? "causal" : "full", head_dims[d]);

            tell(p, what);
            if (!fit_rate(p, id, &rate, error))
                return false;
            rate.kernel = g_strdup(kernel->name);
            rate.source = g_strdup(c->method);
            g_array_append_val(c->rates, rate);
        }
    }
    return true;
}

/* ---- elementwise kernels ---- */

/* On so many rows of queries, or of keys where the kernel works on those. */
static LhKernelArgs
traffic_args(const LhKernel *kernel, uint64_t rows)
{
    const bool keys = lh_tensor_is_kv(kernel->operands[0].kind);

    if (kernel->args == LH_ARGS_ELEMENTS)
        return (LhKernelArgs){ .elements.count = rows * TRAFFIC_HEADS * TRAFFIC_HEAD_DIM };
    return (LhKernelArgs){ .nq = keys ? 0 : rows,
                           .nk = keys ? rows : 0,
                           .states = 1,
                           .batch = 1,
                           .heads = TRAFFIC_HEADS,
                           .groups = TRAFFIC_HEADS,
                           .head_dim = TRAFFIC_HEAD_DIM };
}

static bool
measure_traffic(const LhCalibrateParams *p, LhKernelId id, LhCalibration *c, GError **error)
{
    const LhKernel *kernel = lh_kernels[id];
    const size_t fitted = G_N_ELEMENTS(traffic_rows) - 1;
    LhKernelTraffic traffic = { .provenance = LH_PROVENANCE_MEASURED };
    double reached[G_N_ELEMENTS(traffic_rows)];
    double sorted[G_N_ELEMENTS(traffic_rows)];
    double off[G_N_ELEMENTS(traffic_rows)];

    tell(p, kernel->name);
    for (size_t i = 0; i <= fitted; i++) {
        const LhKernelArgs args = traffic_args(kernel, traffic_rows[i]);

        if (!lh_measure_kernel(&p->measure, id, &args, p->dtype, &reached[i], error))
            return false;
        reached[i] = (double)kernel->memory_bytes(&args, lh_dtype_bytes(p->dtype)) / reached[i];
    }
    memcpy(sorted, reached, sizeof(sorted));
    traffic.bandwidth = lh_median(sorted, fitted);
    for (size_t i = 0; i < fitted; i++)
        off[i] = fabs(reached[i] / traffic.bandwidth - 1);
    traffic.residuals.median = lh_median(off, fitted);
    traffic.residuals.worst = off[fitted - 1];
    traffic.residuals.holdout = fabs(reached[fitted] / traffic.bandwidth - 1);
    traffic.kernel = g_strdup(kernel->name);
    traffic.source = g_strdup(c->method);
    g_array_append_val(c->traffic, traffic);
    return true;
}

/* Softmax of rows that are written out is not: its traffic goes by two lengths. Nor is what lies
 * outside attention, which moves what a framework makes of it. */
static bool
is_elementwise(const LhKernel *kernel)
{
    return kernel->cost == LH_COST_MEMORY && kernel->effect != LH_EFFECT_SOFTMAX &&
           kernel->effect != LH_EFFECT_SOFTMAX_GRAD && kernel->effect != LH_EFFECT_LAYER;
}

static bool
measure_kernels(const LhCalibrateParams *p, LhCalibration *c, GError **error)
{
    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        const LhKernelId id = (LhKernelId)k;

        if (lh_kernels[id]->cost == LH_COST_ATTENTION && !measure_rates(p, id, c, error))
            return false;
        if (is_elementwise(lh_kernels[id]) && !measure_traffic(p, id, c, error))
            return false;
    }
    return true;
}

static void
take_memory(LhCalibration *c)
{
    g_autofree double *reached = g_new(double, c->traffic->len);

    for (guint i = 0; i < c->traffic->len; i++)
        reached[i] = g_array_index(c->traffic, LhKernelTraffic, i).bandwidth;
    c->memory_bandwidth = lh_median(reached, c->traffic->len);
}

/* ---- executor and transport ---- */

static bool
measure_executor(const LhCalibrateParams *p, LhCalibration *c, GError **error)
{
    double issue_s, sync_s;

    tell(p, "host");
    if (!lh_measure_host(&issue_s, &sync_s, error))
        return false;
    c->kernel_launch_ps = lh_time_from_ps(fmax(issue_s, 0) * (double)LH_PS_PER_S);
    c->stream_sync_ps = lh_time_from_ps(fmax(sync_s, 0) * (double)LH_PS_PER_S);
    return true;
}

static bool
measure_link(const LhCalibrateParams *p, LhCalibration *c, GError **error)
{
    const size_t count = G_N_ELEMENTS(transfer_bytes) - (p->quick ? 1 : 0);
    LhTransferPoint points[G_N_ELEMENTS(transfer_bytes)];
    /* Each is a run with a score of messages. */
    const uint32_t repeats = MIN(p->measure.repeats, TRANSFER_REPEATS_MAX);
    LhResiduals residuals;
    double alpha_s;

    for (size_t i = 0; i < count; i++) {
        g_autofree char *size = lh_format_bytes(transfer_bytes[i]);
        g_autofree char *what = g_strdup_printf("messages of %s", size);

        tell(p, what);
        points[i].bytes = (double)transfer_bytes[i];
        if (!lh_measure_transfer(repeats, &lh_backend_cpu, transfer_bytes[i], &points[i].seconds,
                                 error))
            return false;
    }
    if (!lh_fit_transfer(points, count, &alpha_s, &c->link.bandwidth, &residuals)) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "messages: time does not grow with size; is the machine busy?");
        return false;
    }
    c->link.latency_ps = lh_time_from_ps(alpha_s * (double)LH_PS_PER_S);
    c->link.provenance = LH_PROVENANCE_FITTED;
    c->link_residuals = residuals_of(&residuals);
    c->link.source = g_strdup_printf(
        "%s; transport %s, one message at a time, 4 KiB to %u MiB, after Theil and Sen; residuals: "
        "median %.1f %%, worst %.1f %%",
        c->method, lh_transport_threads.name, (unsigned)(transfer_bytes[count - 1] >> 20),
        100 * residuals.median, 100 * residuals.worst);
    return true;
}

/* ---- the whole ---- */

/* The first "model name" of /proc/cpuinfo; caller frees. */
static char *
processor_name(void)
{
    g_autofree char *text = NULL;
    const char *line, *colon, *end;

    if (!g_file_get_contents("/proc/cpuinfo", &text, NULL, NULL))
        return g_strdup("unknown processor");
    line = strstr(text, "model name");
    colon = line == NULL ? NULL : strchr(line, ':');
    end = colon == NULL ? NULL : strchr(colon, '\n');
    if (end == NULL || end - colon <= 2)
        return g_strdup("unknown processor");
    return g_strndup(colon + 2, (gsize)(end - colon - 2));
}

LhCalibration *
lh_calibrate(const LhCalibrateParams *params, GError **error)
{
    g_autoptr(LhCalibration) c = g_new0(LhCalibration, 1);
    g_autofree char *processor = processor_name();

    c->machine =
        g_strdup_printf("%s, %u cores, level %s", processor, lh_cores_count(), lh_cpu()->name);
    c->method = g_strdup_printf(
        "longhaul calibrate%s: kernels %s, %s, %s of %u timings, %u at a time",
        params->quick ? " --quick" : "", lh_device_cpu.kernel_sets[params->measure.kernel_set],
        lh_dtype_names[params->dtype], lh_statistic_names[params->measure.statistic],
        params->measure.repeats, params->measure.threads);
    c->rates = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    c->traffic = g_array_new(FALSE, FALSE, sizeof(LhKernelTraffic));
    if (!measure_kernels(params, c, error))
        return NULL;
    take_memory(c);
    if (!measure_executor(params, c, error) || !measure_link(params, c, error))
        return NULL;
    return g_steal_pointer(&c);
}

void
lh_calibration_free(LhCalibration *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->rates->len; i++) {
        g_free(g_array_index(c->rates, LhKernelRate, i).kernel);
        g_free(g_array_index(c->rates, LhKernelRate, i).source);
    }
    for (guint i = 0; i < c->traffic->len; i++) {
        g_free(g_array_index(c->traffic, LhKernelTraffic, i).kernel);
        g_free(g_array_index(c->traffic, LhKernelTraffic, i).source);
    }
    g_array_unref(c->rates);
    g_array_unref(c->traffic);
    g_free(c->link.source);
    g_free(c->machine);
    g_free(c->method);
    g_free(c);
}

/* ---- the file ---- */

/* Takes @text over: a number with its unit. */
static void
write_unit(LhJsonWriter *w, const char *key, char *text)
{
    lh_jsonw_string(w, key, text);
    g_free(text);
}

static void
write_residuals(LhJsonWriter *w, const LhFitResiduals *r)
{
    lh_jsonw_object_begin(w, "residuals");
    lh_jsonw_double(w, "median", r->median);
    lh_jsonw_double(w, "worst", r->worst);
    lh_jsonw_double(w, "holdout", r->holdout);
    lh_jsonw_object_end(w);
}

static void
write_rates(LhJsonWriter *w, const LhCalibration *c)
{
    lh_jsonw_array_begin(w, "kernels");
    for (guint i = 0; i < c->rates->len; i++) {
        const LhKernelRate *rate = &g_array_index(c->rates, LhKernelRate, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "kernel", rate->kernel);
        lh_jsonw_string(w, "mask", rate->mask == 1 ? "causal" : "full");
        lh_jsonw_uint(w, "head_dim", rate->head_dim);
        write_unit(w, "rate", lh_format_flops(rate->rate));
        lh_jsonw_double(w, "half_length", rate->half_length);
        if (rate->length_min > 0)
            lh_jsonw_uint(w, "length_min", rate->length_min);
        if (rate->length_max > 0)
            lh_jsonw_uint(w, "length_max", rate->length_max);
        lh_jsonw_string(w, "provenance", lh_provenance_names[rate->provenance]);
        lh_jsonw_string(w, "source", rate->source);
        write_residuals(w, &rate->residuals);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_traffic(LhJsonWriter *w, const LhCalibration *c)
{
    lh_jsonw_array_begin(w, "elementwise");
    for (guint i = 0; i < c->traffic->len; i++) {
        const LhKernelTraffic *traffic = &g_array_index(c->traffic, LhKernelTraffic, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "kernel", traffic->kernel);
        write_unit(w, "bandwidth", lh_format_bandwidth(traffic->bandwidth));
        lh_jsonw_string(w, "provenance", lh_provenance_names[traffic->provenance]);
        lh_jsonw_string(w, "source", traffic->source);
        write_residuals(w, &traffic->residuals);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_link(LhJsonWriter *w, const LhLinkClass *link)
{
    lh_jsonw_object_begin(w, "nvlink");
    write_unit(w, "bandwidth", lh_format_bandwidth(link->bandwidth));
    write_unit(w, "latency", lh_format_time(link->latency_ps));
    lh_jsonw_uint(w, "ctas", link->ctas);
    lh_jsonw_string(w, "provenance", lh_provenance_names[link->provenance]);
    lh_jsonw_string(w, "source", link->source);
    lh_jsonw_object_end(w);
}

void
lh_calibration_write(const LhCalibration *c, const char *name, const char *date, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autofree char *source = g_strdup_printf("%s; %s; %s", c->method, c->machine, date);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", "longhaul.profile/1");
    lh_jsonw_string(w, "name", name);
    lh_jsonw_string(w, "description",
                    "One core of a machine as a rank; for the cluster this-machine.");
    lh_jsonw_string(w, "source", source);
    write_unit(w, "memory_bandwidth", lh_format_bandwidth(c->memory_bandwidth));
    lh_jsonw_double(w, "memory_efficiency", 1);
    lh_jsonw_string(w, "memory_provenance", "measured");
    write_unit(w, "kernel_launch", lh_format_time(c->kernel_launch_ps));
    write_unit(w, "stream_sync", lh_format_time(c->stream_sync_ps));
    write_rates(w, c);
    write_traffic(w, c);
    write_link(w, &c->link);
    lh_jsonw_object_end(w);
}
