/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/cluster/describe_import.h"

#include "measure/fit.h"
#include "program/timeline.h"
#include "report/text/number_cells.h"

#include <math.h>

static void
percent_cell(LhTable *table, double share)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    g_ascii_formatd(text, sizeof(text), "%.2f", 100 * share);
    lh_table_cell(table, text, lh_double_to_text(share, exact));
}

static char *
time_text(double seconds)
{
    return lh_format_time(lh_time_from_ps(seconds * (double)LH_PS_PER_S));
}

static void
count_cell(LhTable *table, uint64_t count)
{
    lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, count);
}

LhTable *
lh_describe_traces(const LhImported *imported)
{
    LhTable *table = lh_table_new();
    const GArray *files = imported->run->files;

    lh_table_column(table, "file", "file", NULL, false);
    lh_table_column(table, "kind", "kind", NULL, false);
    lh_table_column(table, "rank", "rank", NULL, true);
    lh_table_column(table, "events", "events", NULL, true);
    lh_table_column(table, "kernels", "kernels", NULL, true);
    lh_table_column(table, "steps", "steps", NULL, true);
    lh_table_column(table, "broken", "broken", NULL, true);
    lh_table_column(table, "dropped", "dropped", NULL, true);
    for (guint i = 0; i < files->len; i++) {
        const LhGpuTraceFile *f = &g_array_index(files, LhGpuTraceFile, i);

        lh_table_row(table);
        lh_table_cell(table, f->path, NULL);
        lh_table_cell(table, f->kind, NULL);
        count_cell(table, f->rank);
        count_cell(table, f->events);
        count_cell(table, f->kernels);
        count_cell(table, f->steps);
        count_cell(table, f->broken);
        count_cell(table, f->dropped);
    }
    return table;
}

/* "12.5 GB/s". Caller frees. */
static char *
value_text(const LhTraceFitted *c, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    switch (c->kind) {
    case LH_TRACE_FIT_RATE:
        return lh_format_flops(value);
    case LH_TRACE_FIT_BANDWIDTH:
        return lh_format_bandwidth(value);
    case LH_TRACE_FIT_LATENCY:
        return time_text(value);
    default:
        g_ascii_formatd(number, sizeof(number), "%.1f", value);
        return g_strconcat(number, " tokens", NULL);
    }
}

/* What it is a constant of: "attention_fwd, causal", "NIC". Caller frees. */
static char *
owner_text(const LhImported *imported, const LhTraceFitted *c)
{
    if (c->kind == LH_TRACE_FIT_RATE || c->kind == LH_TRACE_FIT_HALF_LENGTH)
        return g_strdup_printf("%s, %s", lh_kernels[c->kernel]->name,
                               c->mask == 1 ? "causal" : "full");
    return g_strdup(lh_topology_link_name(imported->setup->topology, (LhTier)c->tier));
}

LhTable *
lh_describe_tuned(const LhImported *imported)
{
    LhTable *table = lh_table_new();
    const GArray *constants = imported->tuning->constants;

    lh_table_column(table, "constant", "constant", NULL, false);
    lh_table_column(table, "of", "of", NULL, false);
    lh_table_column(table, "before", "before", NULL, true);
    lh_table_column(table, "value", "fitted", NULL, true);
    lh_table_column(table, "samples", "samples", NULL, true);
    lh_table_column(table, "off_before", "before", "% off", true);
    lh_table_column(table, "off_median", "median", "% off", true);
    lh_table_column(table, "off_worst", "worst", "% off", true);
    for (guint i = 0; i < constants->len; i++) {
        const LhTraceFitted *c = &g_array_index(constants, LhTraceFitted, i);
        g_autofree char *owner = owner_text(imported, c);

        if (!c->determined && c->kind > LH_TRACE_FIT_BANDWIDTH)
            continue;
        lh_table_row(table);
        lh_table_cell(table, lh_trace_fit_names[c->kind], NULL);
        lh_table_cell(table, owner, NULL);
        lh_cell_unit(table, value_text(c, c->before), c->before);
        if (!c->determined) {
            lh_table_note(table, "kept: what was seen does not determine it");
            continue;
        }
        lh_cell_unit(table, value_text(c, c->value), c->value);
        count_cell(table, c->samples);
        percent_cell(table, c->off_before);
        percent_cell(table, c->off_median);
        percent_cell(table, c->off_worst);
    }
    return table;
}

/* Samples of one name. */
typedef struct {
    char *name;
    guint samples;
    uint64_t repeats;
    double measured_s, before_s, after_s;
    GArray *off; /* of double */
} Group;

static void
group_clear(gpointer data)
{
    Group *group = data;

    g_free(group->name);
    g_array_unref(group->off);
}

/* "attention_fwd, full", "messages over NIC", "all-gather over NVLink". Caller frees. */
static char *
sample_name(const LhImported *imported, const LhSample *s, guint record)
{
    const LhTopology *topology = imported->setup->topology;
    const LhTimelineRecord *r = &g_array_index(imported->match->records, LhTimelineRecord, record);
    const char *what = r->kind == LH_OP_EXCHANGE ? "messages" : "collectives";

    if (s->kind == LH_OP_COMPUTE)
        return g_strdup_printf("%s, %s", lh_kernels[s->kernel]->name,
                               s->triangle ? "causal" : "full");
    if (s->tier >= LH_TIERS)
        return g_strdup(what);
    return g_strdup_printf("%s over %s", what, lh_topology_link_name(topology, (LhTier)s->tier));
}

static Group *
group_of(GArray *groups, char *name)
{
    Group group = { .name = name };

    for (guint i = 0; i < groups->len; i++) {
        if (g_strcmp0(g_array_index(groups, Group, i).name, name) == 0) {
            g_free(name);
            return &g_array_index(groups, Group, i);
        }
    }
    group.off = g_array_new(FALSE, FALSE, sizeof(double));
    g_array_append_val(groups, group);
    return &g_array_index(groups, Group, groups->len - 1);
}

/* In the order in which they come. Caller unrefs. */
static GArray *
group_samples(const LhImported *imported)
{
    const LhTraceAlignment *m = imported->match;
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(Group));

    g_array_set_clear_func(groups, group_clear);
    for (guint i = 0; i < m->samples->len; i++) {
        const LhSample *s = &g_array_index(m->samples, LhSample, i);
        const guint record = g_array_index(m->members, guint, s->first);
        Group *group = group_of(groups, sample_name(imported, s, record));
        const double after_s = lh_sample_seconds(m, s, imported->tuning->records);
        const double off = fabs(after_s / s->measured_s - 1);

        group->samples++;
        group->repeats += s->repeats;
        group->measured_s += s->measured_s;
        group->before_s += lh_sample_seconds(m, s, m->records);
        group->after_s += after_s;
        g_array_append_val(group->off, off);
    }
    return groups;
}

LhTable *
lh_describe_samples(const LhImported *imported)
{
    LhTable *table = lh_table_new();
    g_autoptr(GArray) groups = group_samples(imported);

    lh_table_column(table, "part", "part", NULL, false);
    lh_table_column(table, "ops", "ops", NULL, true);
    lh_table_column(table, "seen", "seen", "times", true);
    lh_table_column(table, "measured_s", "measured", NULL, true);
    lh_table_column(table, "before_s", "before", "simulated", true);
    lh_table_column(table, "fitted_s", "fitted", "simulated", true);
    lh_table_column(table, "off_median", "median", "% off", true);
    lh_table_column(table, "off_worst", "worst", "% off", true);
    for (guint i = 0; i < groups->len; i++) {
        const Group *g = &g_array_index(groups, Group, i);
        const double median = lh_median((double *)(void *)g->off->data, g->off->len);

        lh_table_row(table);
        lh_table_cell(table, g->name, NULL);
        count_cell(table, g->samples);
        count_cell(table, g->repeats);
        lh_cell_time(table, g->measured_s);
        lh_cell_time(table, g->before_s);
        lh_cell_time(table, g->after_s);
        percent_cell(table, median);
        percent_cell(table, g_array_index(g->off, double, g->off->len - 1));
    }
    return table;
}

void
lh_describe_unmatched(const LhImported *imported, GString *out)
{
    const GPtrArray *notes = imported->match->notes;

    for (guint i = 0; i < notes->len; i++)
        g_string_append_printf(out, "Left out: %s.\n", (char *)g_ptr_array_index(notes, i));
}

LhTable *
lh_imported_timeline(const LhImported *imported)
{
    const LhTraceAlignment *m = imported->match;
    LhTable *table = lh_table_new();

    lh_table_column(table, "rank", "rank", NULL, true);
    lh_table_column(table, "op", "op", NULL, true);
    lh_table_column(table, "kind", "kind", NULL, false);
    lh_table_column(table, "kernel", "kernel", NULL, false);
    lh_table_column(table, "start_s", "start", "simulated", true);
    lh_table_column(table, "simulated_s", "simulated", NULL, true);
    lh_table_column(table, "measured_s", "measured", NULL, true);
    for (guint i = 0; i < m->records->len; i++) {
        const LhTimelineRecord *r = &g_array_index(imported->tuning->records, LhTimelineRecord, i);

        if (!(g_array_index(m->measured, double, i) > 0))
            continue;
        lh_table_row(table);
        count_cell(table, r->rank);
        count_cell(table, r->op);
        lh_table_cell(table, lh_op_kind_names[r->kind], NULL);
        lh_table_cell(table, r->kind == LH_OP_COMPUTE ? lh_kernels[r->kernel]->name : "", NULL);
        lh_cell_time(table, (double)r->start_ps / (double)LH_PS_PER_S);
        lh_cell_time(table, (double)(r->end_ps - r->start_ps) / (double)LH_PS_PER_S);
        lh_cell_time(table, g_array_index(m->measured, double, i));
    }
    return table;
}

/* --- JSON ---------------------------------------------------------------------------------------
 */

static void
write_traces(const LhImported *imported, LhJsonWriter *w)
{
    lh_jsonw_array_begin(w, "traces");
    for (guint i = 0; i < imported->run->files->len; i++) {
        const LhGpuTraceFile *f = &g_array_index(imported->run->files, LhGpuTraceFile, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "path", f->path);
        lh_jsonw_string(w, "sha256", f->sha256);
        lh_jsonw_string(w, "kind", f->kind);
        lh_jsonw_uint(w, "rank", f->rank);
        lh_jsonw_uint(w, "events", f->events);
        lh_jsonw_uint(w, "kernels", f->kernels);
        lh_jsonw_uint(w, "steps", f->steps);
        lh_jsonw_uint(w, "broken", f->broken);
        lh_jsonw_uint(w, "dropped", f->dropped);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_tuned_constants(const LhImported *imported, LhJsonWriter *w)
{
    lh_jsonw_array_begin(w, "constants");
    for (guint i = 0; i < imported->tuning->constants->len; i++) {
        const LhTraceFitted *c = &g_array_index(imported->tuning->constants, LhTraceFitted, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "constant", lh_trace_fit_names[c->kind]);
        if (c->kind == LH_TRACE_FIT_RATE || c->kind == LH_TRACE_FIT_HALF_LENGTH) {
            lh_jsonw_string(w, "kernel", lh_kernels[c->kernel]->name);
            lh_jsonw_string(w, "mask", c->mask == 1 ? "causal" : "full");
        } else {
            lh_jsonw_string(w, "link", lh_tier_names[c->tier]);
        }
        lh_jsonw_double(w, "before", c->before);
        lh_jsonw_double(w, "value", c->value);
        lh_jsonw_bool(w, "determined", c->determined);
        lh_jsonw_uint(w, "samples", c->samples);
        lh_jsonw_double(w, "off_before", c->off_before);
        lh_jsonw_double(w, "off_median", c->off_median);
        lh_jsonw_double(w, "off_worst", c->off_worst);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_parts(const LhImported *imported, LhJsonWriter *w)
{
    g_autoptr(GArray) groups = group_samples(imported);

    lh_jsonw_array_begin(w, "parts");
    for (guint i = 0; i < groups->len; i++) {
        const Group *g = &g_array_index(groups, Group, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "part", g->name);
        lh_jsonw_uint(w, "ops", g->samples);
        lh_jsonw_uint(w, "seen", g->repeats);
        lh_jsonw_double(w, "measured_s", g->measured_s);
        lh_jsonw_double(w, "before_s", g->before_s);
        lh_jsonw_double(w, "fitted_s", g->after_s);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

void
lh_imported_json(const LhImported *imported, const LhStamp *stamp, GString *out)
{
    LhJsonWriter *w = lh_jsonw_new(out, false);
    const GPtrArray *notes = imported->match->notes;

    lh_document_begin(w, "longhaul.import/1", stamp, imported->setup, false);
    lh_jsonw_string(w, "schedule", imported->program->name);
    lh_jsonw_uint(w, "ranks_seen", imported->match->ranks);
    lh_jsonw_uint(w, "steps", imported->match->steps);
    lh_jsonw_uint(w, "calls", imported->match->calls);
    write_traces(imported, w);
    write_tuned_constants(imported, w);
    write_parts(imported, w);
    lh_jsonw_seconds(w, "makespan_before_s", imported->tuning->before_ps);
    lh_jsonw_seconds(w, "makespan_s", imported->tuning->makespan_ps);
    lh_jsonw_array_begin(w, "left_out");
    for (guint i = 0; i < notes->len; i++)
        lh_jsonw_string(w, NULL, g_ptr_array_index(notes, i));
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
}
