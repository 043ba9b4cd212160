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

/* Subject of the constant: "attention_fwd, causal", "NIC". Caller frees. */
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
    lh_table_column(table, "off_before", "before", "% error", true);
    lh_table_column(table, "off_median", "median", "% error", true);
    lh_table_column(table, "off_worst", "worst", "% error", true);
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
            lh_table_note(table, "unchanged: the traces do not determine it");
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

/* Samples with the same name. */
typedef struct {
    char *name;
    uint64_t samples, repeats;
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

/* In order of appearance. Caller unrefs. */
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
    lh_table_column(table, "off_median", "median", "% error", true);
    lh_table_column(table, "off_worst", "worst", "% error", true);
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

/* ---- as JSON ---- */

typedef struct {
    const char *path, *sha256, *kind;
    uint64_t rank, events, kernels, steps, broken, dropped;
} ImportedTrace;

static const LhField imported_trace_fields[] = {
    LH_FIELD_ROW(STRING, ImportedTrace, path, "path", ALWAYS, .description = "Path as given."),
    LH_FIELD_ROW(STRING, ImportedTrace, sha256, "sha256", ALWAYS,
                 .description = "SHA-256 of the unpacked file."),
    LH_FIELD_ROW(STRING, ImportedTrace, kind, "kind", ALWAYS,
                 .description = "Program that wrote it."),
    LH_FIELD_ROW(UINT, ImportedTrace, rank, "rank", ALWAYS,
                 .description = "The rank of the trace; of several, the first."),
    LH_FIELD_ROW(UINT, ImportedTrace, events, "events", ALWAYS,
                 .description = "Events in the file."),
    LH_FIELD_ROW(UINT, ImportedTrace, kernels, "kernels", ALWAYS, .description = "Kernels kept."),
    LH_FIELD_ROW(UINT, ImportedTrace, steps, "steps", ALWAYS, .description = "Steps kept."),
    LH_FIELD_ROW(UINT, ImportedTrace, broken, "broken", ALWAYS,
                 .description = "Events that could not be read."),
    LH_FIELD_ROW(UINT, ImportedTrace, dropped, "dropped", ALWAYS,
                 .description = "Events without a time, or with a negative duration."),
    { .name = NULL },
};

typedef struct {
    int kind;           /* LhTraceFitKind */
    const char *kernel; /* NULL: the constant is of a link */
    const char *mask;   /* likewise */
    const char *link;   /* NULL: the constant is of a kernel's curve */
    double before, value;
    bool determined;
    uint64_t samples;
    double off_before, off_median, off_worst;
} ImportedConstant;

static const char *const imported_masks[] = { "full", "causal", NULL };

static const LhField imported_constant_fields[] = {
    LH_FIELD_ROW(CHOICE, ImportedConstant, kind, "constant", ALWAYS, .choices = lh_trace_fit_names,
                 .description = "The constant."),
    LH_FIELD_ROW(STRING, ImportedConstant, kernel, "kernel", IF_ANY,
                 .description = "Kernel of the curve."),
    LH_FIELD_ROW(STRING, ImportedConstant, mask, "mask", IF_ANY, .choices = imported_masks,
                 .description = "Mask of the curve."),
    LH_FIELD_ROW(STRING, ImportedConstant, link, "link", IF_ANY, .choices = lh_tier_names,
                 .description = "Class of links."),
    LH_FIELD_ROW(DOUBLE, ImportedConstant, before, "before", ALWAYS,
                 .description = "Value before, in flop/s, bytes/s, tokens or seconds."),
    LH_FIELD_ROW(DOUBLE, ImportedConstant, value, "value", ALWAYS,
                 .description = "Fitted value; the value before, if it is not determined."),
    LH_FIELD_ROW(BOOL, ImportedConstant, determined, "determined", ALWAYS,
                 .description = "Whether the traces determine it."),
    LH_FIELD_ROW(UINT, ImportedConstant, samples, "samples", ALWAYS,
                 .description = "Samples that depend on it most."),
    LH_FIELD_ROW(DOUBLE, ImportedConstant, off_before, "off_before", ALWAYS,
                 .description =
                     "Median of |simulated / measured - 1| over these, with the constants before."),
    LH_FIELD_ROW(DOUBLE, ImportedConstant, off_median, "off_median", ALWAYS,
                 .description = "The same with the fitted constants."),
    LH_FIELD_ROW(DOUBLE, ImportedConstant, off_worst, "off_worst", ALWAYS,
                 .description = "Worst |simulated / measured - 1| with the fitted constants."),
    { .name = NULL },
};

static const LhField imported_part_fields[] = {
    LH_FIELD_ROW(STRING, Group, name, "part", ALWAYS,
                 .description = "Name of the kernel, or kind of communication and link."),
    LH_FIELD_ROW(UINT, Group, samples, "ops", ALWAYS, .description = "Ops found in the traces."),
    LH_FIELD_ROW(UINT, Group, repeats, "seen", ALWAYS,
                 .description = "Occurrences of these ops in the traces."),
    LH_FIELD_ROW(DOUBLE, Group, measured_s, "measured_s", ALWAYS,
                 .description = "Measured time, in seconds."),
    LH_FIELD_ROW(DOUBLE, Group, before_s, "before_s", ALWAYS,
                 .description = "Time simulated with the constants before."),
    LH_FIELD_ROW(DOUBLE, Group, after_s, "fitted_s", ALWAYS,
                 .description = "Time simulated with the fitted constants."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    const char *schedule;
    uint64_t ranks, steps, calls;
    const GArray *traces, *constants, *parts; /* of ImportedTrace, ImportedConstant, Group */
    LhTime before_ps, makespan_ps;
    const GPtrArray *left_out;
} ImportedDocument;

static const char *const imported_schema[] = { "longhaul.import/1", NULL };

const LhField lh_import_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(ImportedDocument, head, imported_schema),
    LH_FIELD_ROW(STRING, ImportedDocument, schedule, "schedule", ALWAYS,
                 .description = "The schedule."),
    LH_FIELD_ROW(UINT, ImportedDocument, ranks, "ranks_seen", ALWAYS,
                 .description = "Ranks with traces."),
    LH_FIELD_ROW(UINT, ImportedDocument, steps, "steps", ALWAYS,
                 .description =
                     "Steps that count, of the rank with the fewest; 0: none are marked."),
    LH_FIELD_ROW(UINT, ImportedDocument, calls, "calls", ALWAYS,
                 .description = "Calls of the attention module per step."),
    LH_FIELD_ROW(ARRAY, ImportedDocument, traces, "traces", ALWAYS, .fields = imported_trace_fields,
                 .element_size = sizeof(ImportedTrace), .description = "Files read."),
    LH_FIELD_ROW(ARRAY, ImportedDocument, constants, "constants", ALWAYS,
                 .fields = imported_constant_fields, .element_size = sizeof(ImportedConstant),
                 .description = "Constants: curves of kernels, then links."),
    LH_FIELD_ROW(ARRAY, ImportedDocument, parts, "parts", ALWAYS, .fields = imported_part_fields,
                 .element_size = sizeof(Group),
                 .description = "Times by kernel and kind of link, summed over ops."),
    LH_FIELD_SECONDS_ROW(INT, ImportedDocument, before_ps, "makespan_before_s", ALWAYS,
                         .description = "Makespan of the simulation before the fit."),
    LH_FIELD_SECONDS_ROW(INT, ImportedDocument, makespan_ps, "makespan_s", ALWAYS,
                         .description = "Makespan with the fitted constants."),
    LH_FIELD_ROW(STRINGS, ImportedDocument, left_out, "left_out", ALWAYS,
                 .description = "Parts of the traces that could not be matched."),
    { .name = NULL },
};

static GArray *
imported_traces(const LhImported *imported)
{
    const GArray *files = imported->run->files;
    GArray *traces = g_array_new(FALSE, FALSE, sizeof(ImportedTrace));

    for (guint i = 0; i < files->len; i++) {
        const LhGpuTraceFile *f = &g_array_index(files, LhGpuTraceFile, i);
        const ImportedTrace trace = { .path = f->path,
                                      .sha256 = f->sha256,
                                      .kind = f->kind,
                                      .rank = f->rank,
                                      .events = f->events,
                                      .kernels = f->kernels,
                                      .steps = f->steps,
                                      .broken = f->broken,
                                      .dropped = f->dropped };

        g_array_append_val(traces, trace);
    }
    return traces;
}

static GArray *
imported_constants(const LhImported *imported)
{
    const GArray *tuned = imported->tuning->constants;
    GArray *constants = g_array_new(FALSE, FALSE, sizeof(ImportedConstant));

    for (guint i = 0; i < tuned->len; i++) {
        const LhTraceFitted *c = &g_array_index(tuned, LhTraceFitted, i);
        const bool curve = c->kind == LH_TRACE_FIT_RATE || c->kind == LH_TRACE_FIT_HALF_LENGTH;
        const ImportedConstant constant = {
            .kind = (int)c->kind,
            .kernel = curve ? lh_kernels[c->kernel]->name : NULL,
            .mask = curve ? imported_masks[c->mask == 1] : NULL,
            .link = curve ? NULL : lh_tier_names[c->tier],
            .before = c->before,
            .value = c->value,
            .determined = c->determined,
            .samples = c->samples,
            .off_before = c->off_before,
            .off_median = c->off_median,
            .off_worst = c->off_worst,
        };

        g_array_append_val(constants, constant);
    }
    return constants;
}

void
lh_imported_json(const LhImported *imported, const LhStamp *stamp, GString *out)
{
    g_auto(LhDocumentHead) head = lh_document_head(imported_schema[0], stamp, imported->setup);
    g_autoptr(GArray) traces = imported_traces(imported);
    g_autoptr(GArray) constants = imported_constants(imported);
    g_autoptr(GArray) parts = group_samples(imported);
    const ImportedDocument document = {
        .head = head,
        .schedule = imported->program->name,
        .ranks = imported->match->ranks,
        .steps = imported->match->steps,
        .calls = imported->match->calls,
        .traces = traces,
        .constants = constants,
        .parts = parts,
        .before_ps = imported->tuning->before_ps,
        .makespan_ps = imported->tuning->makespan_ps,
        .left_out = imported->match->notes,
    };

    lh_json_encode_text(lh_import_fields, &document, out);
}
