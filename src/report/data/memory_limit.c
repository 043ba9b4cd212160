/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/memory_limit.h"

#include "compare/error_bar.h"
#include "compare/totals.h"
#include "report/data/labels.h"
#include "scenario/setup_weights.h"

/* Appends categories, largest first. */
static void
append_categories(GString *out, const uint64_t by_category[LH_CATEGORIES])
{
    bool listed[LH_CATEGORIES] = { false };

    for (int n = 0; n < LH_CATEGORIES; n++) {
        int most = -1;
        g_autofree char *bytes = NULL;

        for (int c = 0; c < LH_CATEGORIES; c++) {
            if (!listed[c] && by_category[c] > 0 &&
                (most < 0 || by_category[c] > by_category[most]))
                most = c;
        }
        if (most < 0)
            return;
        listed[most] = true;
        bytes = lh_format_bytes(by_category[most]);
        g_string_append_printf(out, "%s%s %s", n > 0 ? ", " : ": ", lh_category_names[most], bytes);
    }
}

void
lh_describe_peak_interval(const LhSetup *setup, uint64_t bytes, GString *out)
{
    const double error = lh_memory_error(setup);
    g_autofree char *low = lh_format_bytes((uint64_t)((double)bytes / (1 + error)));
    g_autofree char *high = lh_format_bytes((uint64_t)((double)bytes * (1 + error)));

    if (error > 0)
        g_string_append_printf(out, " (%s to %s in four measurements of five)", low, high);
}

/* Appends "; first exceeded at 1.2 s for gradients, at op 12 (...)", with the rank unless it is
 * @peak_rank. */
static void
describe_first(const LhOutOfMemory *oom, uint32_t peak_rank, GString *out)
{
    g_autofree char *time = lh_format_time(oom->time_ps);
    g_autofree char *op = lh_describe_memory_op(&oom->op);

    g_string_append_printf(out, "; first exceeded at %s", time);
    if (oom->rank != peak_rank)
        g_string_append_printf(out, " on rank %u", oom->rank);
    if (oom->op.op == LH_OP_NONE)
        g_string_append_printf(out, ", %s", op);
    else
        g_string_append_printf(out, " for %s, at %s", lh_category_names[oom->op.category], op);
}

/* For a program that accounts for all memory. */
static char *
describe_peak(const LhSetup *setup, const LhSimResult *result)
{
    const LhOutOfMemory *oom = result->out_of_memory;
    GString *out = g_string_new(NULL);
    g_autofree char *needed = NULL;
    g_autofree char *limit = lh_format_bytes(oom->limit_bytes);
    LhTotals totals;

    lh_totals(result, &totals);
    needed = lh_format_bytes(totals.peak_bytes);
    g_string_append_printf(out, "rank %u needs %s", totals.peak_rank, needed);
    lh_describe_peak_interval(setup, totals.peak_bytes, out);
    g_string_append_printf(out, " of %s", limit);
    append_categories(out, result->ranks[totals.peak_rank].peak->by_category);
    describe_first(oom, totals.peak_rank, out);
    return g_string_free(out, FALSE);
}

/* For attention alone: its buffers and a share of the weights are a lower bound of the memory. */
static char *
describe_least(const LhSetup *setup, const LhSimResult *result)
{
    const uint64_t share = lh_setup_weight_bytes_per_rank(setup);
    g_autofree char *weights = lh_format_bytes(share);
    g_autofree char *has = lh_format_bytes(setup->device->memory_capacity);
    g_autofree char *buffers = NULL;
    GString *out = g_string_new(NULL);
    LhTotals totals;

    lh_totals(result, &totals);
    buffers = lh_format_bytes(totals.peak_bytes);
    g_string_append_printf(out, "rank %u needs %s of attention buffers%s%s%s, a GPU has %s",
                           totals.peak_rank, buffers, share > 0 ? " and at least " : "",
                           share > 0 ? weights : "", share > 0 ? " of weights" : "", has);
    describe_first(result->out_of_memory, totals.peak_rank, out);
    return g_string_free(out, FALSE);
}

static char *
describe_host(const LhHostMemory *host)
{
    g_autofree char *needed = lh_format_bytes(host->needed_bytes);
    g_autofree char *limit = lh_format_bytes(host->limit_bytes);

    return g_strdup_printf("node %u needs %s of its %s of host memory for what is offloaded",
                           host->node, needed, limit);
}

char *
lh_describe_memory_limit(const LhSetup *setup, const LhSimResult *result)
{
    const LhOutOfMemory *oom = result->out_of_memory;

    if (oom == NULL)
        return describe_host(&result->host_memory);
    return oom->by_category[LH_CATEGORY_ATTENTION] != oom->needed_bytes
               ? describe_peak(setup, result)
               : describe_least(setup, result);
}
