/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandwidths are GB/s of 10^9 bytes, as nccl-tests has them: algbw is size over
 * time, busbw what that stands for on the busiest link of rings.
 */
#include "report/text/cluster/describe_log_check.h"

#include "base/error.h"
#include "base/escape.h"
#include "report/base/text.h"
#include "report/data/document.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIGABYTE 1e9
#define US_PER_S 1e6

static const LhLogCheckRun *
run_at(const LhLogCheck *held, guint index)
{
    return g_ptr_array_index(held->runs, index);
}

static const LhLogCheckRow *
row_of(const LhLogCheckRun *run, guint index)
{
    return &g_array_index(run->rows, LhLogCheckRow, index);
}

/* GB/s. */
static double
algbw_of(const LhLogCheckRow *row, double seconds)
{
    return (double)row->bytes / seconds / GIGABYTE;
}

static double
share_of_bus(const LhLogCheckRun *run)
{
    return lh_nccl_test_bus_share(run->single->op, run->single->ranks);
}

/* What busbw a link allows that is loaded so: GB/s. */
static double
busbw_allowed(const LhLogCheckRun *run, const LhLinkLoad *load)
{
    return share_of_bus(run) / load->s_per_byte / GIGABYTE;
}

static const LhLinkLoad *
load_at(const LhLogCheckRun *run, guint index)
{
    return &g_array_index(run->loads, LhLinkLoad, index);
}

/* NULL: within its bar, or there is no log. */
static const char *
verdict_of(const LhLogCheckRow *row)
{
    const double bars = row->log_s > 0 ? lh_log_check_bars(row, row->time.seconds) : 0;

    return bars > 1 ? "slow" : bars < -1 ? "fast" : NULL;
}

static char *
load_name(const LhLogCheckRun *run, const LhLinkLoad *load)
{
    return load->link == LH_LINK_OF_PAIR
               ? g_strdup("what one GPU of a node reaches to one of another")
               : lh_network_link_name(&run->single->setup->network, load->link);
}

/* Links that are loaded as the first one is. */
static guint
equal_loads(const LhLogCheckRun *run)
{
    guint count = 0;

    while (count < run->loads->len &&
           load_at(run, count)->s_per_byte >= load_at(run, 0)->s_per_byte * (1 - 1e-9))
        count++;
    return count;
}

/* ---- cells ---- */

/* As nccl-tests prints times: fewer decimals of longer ones. */
static const char *
us_text(double seconds, char *buffer)
{
    const double us = seconds * US_PER_S;

    return g_ascii_formatd(buffer, LH_TEXT_SIZE,
                           us < 1000    ? "%.2f"
                           : us < 10000 ? "%.1f"
                                        : "%.0f",
                           us);
}

static const char *
rate_text(double gbps, char *buffer) /* nocheck:unit: GB/s */
{
    return g_ascii_formatd(buffer, LH_TEXT_SIZE, "%.2f", gbps);
}

static void
add_range(LhTable *t, const char *low, const char *high)
{
    g_autofree char *text = g_strdup_printf("%s..%s", low, high);

    lh_table_cell(t, text, NULL);
}

static void
add_held_times(LhTable *t, const LhLogCheckRun *run, const LhLogCheckRow *row)
{
    const double s = row->time.seconds, wide = 1 + row->time.error, bus = share_of_bus(run);
    char a[LH_TEXT_SIZE], b[LH_TEXT_SIZE];

    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, row->bytes);
    lh_table_cell(t, us_text(s, a), NULL);
    add_range(t, us_text(s / wide, a), us_text(s * wide, b));
    lh_table_cell(t, rate_text(algbw_of(row, s), a), NULL);
    lh_table_cell(t, rate_text(bus * algbw_of(row, s), a), NULL);
    add_range(t, rate_text(bus * algbw_of(row, s * wide), a),
              rate_text(bus * algbw_of(row, s / wide), b));
    lh_table_cell(t, lh_times_source_names[row->time.source], NULL);
}

static LhTable *
table_of_run(const LhLogCheckRun *run)
{
    LhTable *t = lh_table_new();
    char buffer[LH_TEXT_SIZE];

    lh_table_column(t, "size", "size", "B", true);
    lh_table_column(t, "time", "time", "us", true);
    lh_table_column(t, "range", "low..high", "us", true);
    lh_table_column(t, "algbw", "algbw", "GB/s", true);
    lh_table_column(t, "busbw", "busbw", "GB/s", true);
    lh_table_column(t, "busbw_range", "low..high", "GB/s", true);
    lh_table_column(t, "source", "source", NULL, false);
    if (run->log != NULL) {
        lh_table_column(t, "log", "log", "us", true);
        lh_table_column(t, "log_over_time", "log/time", NULL, true);
        lh_table_column(t, "verdict", "verdict", NULL, false);
    }
    for (guint i = 0; i < run->rows->len; i++) {
        const LhLogCheckRow *row = row_of(run, i);

        lh_table_row(t);
        add_held_times(t, run, row);
        if (run->log == NULL)
            continue;
        lh_table_cell(t, us_text(row->log_s, buffer), NULL);
        lh_table_cell(t, rate_text(row->log_s / row->time.seconds, buffer), NULL);
        lh_table_cell(t, verdict_of(row) != NULL ? verdict_of(row) : "", NULL);
    }
    return t;
}

static LhTable *
table_of_links(const LhLogCheckRun *run)
{
    LhTable *t = lh_table_new();
    char buffer[LH_TEXT_SIZE];

    lh_table_column(t, "link", "most loaded links", NULL, false);
    lh_table_column(t, "allows", "allows", "GB/s of busbw", true);
    for (guint i = 0; i < MIN(run->loads->len, LH_LOG_CHECK_LINKS); i++) {
        g_autofree char *name = load_name(run, load_at(run, i));

        lh_table_row(t);
        lh_table_cell(t, name, NULL);
        lh_table_cell(t, rate_text(busbw_allowed(run, load_at(run, i)), buffer), NULL);
    }
    return t;
}

/* ---- sentences ---- */

static const char *
plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* "pcie up, node 0, index 0 (of 64 PCIe, 64 NIC links that carry as much)". */
static void
describe_limit(const LhLogCheckRun *run, GString *out)
{
    const LhSetup *setup = run->single->setup;
    const guint equal = equal_loads(run);
    guint links[LH_TIERS] = { 0 };
    g_autofree char *name = load_name(run, load_at(run, 0));
    const char *before = " (of ";

    for (guint i = 0; i < equal; i++) {
        const uint32_t link = load_at(run, i)->link;

        if (link != LH_LINK_OF_PAIR)
            links[lh_network_link(&setup->network, link).tier]++;
    }
    g_string_append(out, name);
    for (int tier = 0; tier < LH_TIERS && equal > 1; tier++) {
        if (links[tier] == 0)
            continue;
        g_string_append_printf(out, "%s%u %s", before, links[tier],
                               lh_topology_link_name(setup->topology, (LhTier)tier));
        before = ", ";
    }
    g_string_append(out, equal > 1 ? " links that carry as much)" : "");
}

static void
describe_run(const LhLogCheckRun *run, GString *out)
{
    const LhNcclTest *s = run->single;
    char buffer[LH_TEXT_SIZE];

    g_string_append_printf(out,
                           "%s on %" G_GUINT64_FORMAT " ranks, %" G_GUINT64_FORMAT
                           " node%s of %s: links allow %s GB/s of busbw; the limit is ",
                           s->op->name, s->ranks, s->nodes, plural(s->nodes),
                           s->setup->topology->name,
                           rate_text(busbw_allowed(run, load_at(run, 0)), buffer));
    describe_limit(run, out);
    g_string_append(out, ".\n");
    if (run->log != NULL)
        g_string_append_printf(out, "Log: %s (%s%s%s).\n", run->log->file, run->log->program,
                               run->log->nccl != NULL ? ", NCCL " : "",
                               run->log->nccl != NULL ? run->log->nccl : "");
}

/* "as if node.nics.bandwidth were 0.5 of what it is (24 GB/s in place of 48 GB/s)". */
static void
describe_lever(const LhTopology *t, const LhLogCheckCause *cause, GString *out)
{
    const double now = lh_lever_value(t, cause->lever);
    LhTopology changed = *t;
    g_autofree char *before = NULL, *after = NULL;
    double then;

    lh_lever_scale(&changed, cause->lever, cause->factor);
    then = lh_lever_value(&changed, cause->lever);
    if (cause->lever->kind == LH_LEVER_RATE) {
        before = lh_format_bandwidth(now);
        after = lh_format_bandwidth(then);
    } else if (cause->lever->kind == LH_LEVER_LATENCY) {
        before = lh_format_time((LhTime)(now * (double)LH_PS_PER_S));
        after = lh_format_time((LhTime)(then * (double)LH_PS_PER_S));
    } else {
        before = g_strdup_printf("%g", now);
        after = g_strdup_printf("%g", then);
    }
    g_string_append_printf(out, "as if %s were %.3g %s what it is (%s in place of %s)",
                           cause->lever->path, then / now, then < now ? "of" : "times", after,
                           before);
}

static void
describe_causes(const LhLogCheck *held, GString *out)
{
    const LhTopology *t = run_at(held, 0)->single->setup->topology;

    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);

        g_string_append(out, i == 0 ? "It is " : "Or it is ");
        if (cause->lever != NULL)
            describe_lever(t, cause, out);
        else
            g_string_append_printf(out, "as with %s", cause->way);
        g_string_append_printf(out, ": %u of %u rows are within their bars then.\n", cause->inside,
                               held->logged);
    }
    if (held->causes->len == 0)
        g_string_append(out, "No single number of the topology's file explains the others.\n");
}

static void
describe_logs(const LhLogCheck *held, GString *out)
{
    if (held->logged == 0)
        return;
    g_string_append_printf(out, "\n%u of %u row%s of the log%s %s within %s bar%s.\n", held->inside,
                           held->logged, plural(held->logged), plural(held->runs->len),
                           held->logged == 1 ? "is" : "are", held->logged == 1 ? "its" : "their",
                           plural(held->logged));
    if (held->inside < held->logged)
        describe_causes(held, out);
}

void
lh_describe_log_check(const LhLogCheck *held, bool links, LhFormat format, GString *out)
{
    gsize from;

    for (guint i = 0; i < held->runs->len; i++) {
        g_autoptr(LhTable) rows = table_of_run(run_at(held, i));
        g_autoptr(LhTable) loads = table_of_links(run_at(held, i));

        if (i > 0)
            g_string_append_c(out, '\n');
        from = out->len;
        describe_run(run_at(held, i), out);
        lh_table_words(format, out, from);
        g_string_append_c(out, '\n');
        lh_table_print(rows, format, out);
        if (!links)
            continue;
        g_string_append_c(out, '\n');
        lh_table_print(loads, format, out);
    }
    from = out->len;
    describe_logs(held, out);
    lh_table_words(format, out, from);
}

/* ---- for machines ---- */

static void
add_number(LhTable *t, double value)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];

    lh_double_to_text(value, exact);
    lh_table_cell(t, exact, NULL);
}

static void
add_exact_row(LhTable *t, const LhLogCheckRun *run, const LhLogCheckRow *row)
{
    const double s = row->time.seconds, wide = 1 + row->time.error;

    lh_table_row(t);
    lh_table_cell(t, run->single->op->name, NULL);
    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, run->single->ranks);
    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, run->single->nodes);
    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, row->bytes);
    add_number(t, s * US_PER_S);
    add_number(t, s / wide * US_PER_S);
    add_number(t, s * wide * US_PER_S);
    add_number(t, algbw_of(row, s));
    add_number(t, share_of_bus(run) * algbw_of(row, s));
    add_number(t, busbw_allowed(run, load_at(run, 0)));
    lh_table_cell(t, lh_times_source_names[row->time.source], NULL);
    if (run->log == NULL)
        return;
    lh_table_cell(t, run->log->file, NULL);
    lh_table_cell_printf(t, "%u", row->line);
    add_number(t, row->log_s * US_PER_S);
    add_number(t, row->log_s / s);
    lh_table_cell(t, verdict_of(row) != NULL ? verdict_of(row) : "inside", NULL);
}

LhTable *
lh_log_check_table(const LhLogCheck *held)
{
    static const char *const columns[] = {
        "op",      "ranks",      "nodes",         "bytes",      "time_us", "low_us",
        "high_us", "algbw_gbps", "busbw_gbps",    "links_gbps", "source",  "log",
        "line",    "log_us",     "log_over_time", "verdict"
    };
    LhTable *t = lh_table_new();

    for (gsize i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(t, columns[i], columns[i], NULL, false);
    for (guint i = 0; i < held->runs->len; i++) {
        const LhLogCheckRun *run = run_at(held, i);

        for (guint k = 0; k < run->rows->len; k++)
            add_exact_row(t, run, row_of(run, k));
    }
    return t;
}

static void
write_held_row(LhJsonWriter *w, const LhLogCheckRun *run, const LhLogCheckRow *row)
{
    const double s = row->time.seconds, wide = 1 + row->time.error;

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_uint(w, "bytes", row->bytes);
    lh_jsonw_double(w, "time_s", s);
    lh_jsonw_double(w, "low_s", s / wide);
    lh_jsonw_double(w, "high_s", s * wide);
    lh_jsonw_double(w, "algbw_bytes_per_s", (double)row->bytes / s);
    lh_jsonw_double(w, "busbw_bytes_per_s", share_of_bus(run) * (double)row->bytes / s);
    lh_jsonw_string(w, "source", lh_times_source_names[row->time.source]);
    if (run->log != NULL) {
        lh_jsonw_uint(w, "line", row->line);
        lh_jsonw_double(w, "log_s", row->log_s);
        lh_jsonw_string(w, "verdict", verdict_of(row) != NULL ? verdict_of(row) : "inside");
    }
    lh_jsonw_object_end(w);
}

static void
write_links(LhJsonWriter *w, const LhLogCheckRun *run)
{
    lh_jsonw_array_begin(w, "links");
    for (guint i = 0; i < MIN(run->loads->len, LH_LOG_CHECK_LINKS); i++) {
        g_autofree char *name = load_name(run, load_at(run, i));

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "link", name);
        lh_jsonw_double(w, "busbw_bytes_per_s", busbw_allowed(run, load_at(run, i)) * GIGABYTE);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_held_run(LhJsonWriter *w, const LhLogCheckRun *run)
{
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "op", run->single->op->name);
    lh_jsonw_string(w, "cluster", run->single->setup->topology->name);
    lh_jsonw_uint(w, "ranks", run->single->ranks);
    lh_jsonw_uint(w, "nodes", run->single->nodes);
    lh_jsonw_string(w, "log", run->log != NULL ? run->log->file : NULL);
    lh_jsonw_string(w, "nccl", run->log != NULL ? run->log->nccl : NULL);
    write_links(w, run);
    lh_jsonw_array_begin(w, "rows");
    for (guint i = 0; i < run->rows->len; i++)
        write_held_row(w, run, row_of(run, i));
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

static void
write_causes(LhJsonWriter *w, const LhLogCheck *held)
{
    lh_jsonw_array_begin(w, "causes");
    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "as_if", cause->lever != NULL ? cause->lever->path : cause->way);
        if (cause->lever != NULL)
            lh_jsonw_double(w, "factor", cause->factor);
        lh_jsonw_uint(w, "rows_inside", cause->inside);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

/* Files of the first run, and all logs. */
static GPtrArray *
inputs_of(const LhLogCheck *held)
{
    const GPtrArray *own = run_at(held, 0)->single->setup->inputs;
    GPtrArray *inputs = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < own->len; i++) {
        LhInput *input = g_new(LhInput, 1);

        *input = *(const LhInput *)g_ptr_array_index(own, i);
        g_ptr_array_add(inputs, input);
    }
    for (guint i = 0; i < held->runs->len; i++) {
        const LhNcclLog *log = run_at(held, i)->log;
        LhInput *input = log != NULL ? g_new(LhInput, 1) : NULL;

        if (input == NULL)
            continue;
        *input = (LhInput){ "log", log->file, log->sha256 };
        g_ptr_array_add(inputs, input);
    }
    return inputs;
}

void
lh_log_check_json(const LhLogCheck *held, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autoptr(GPtrArray) inputs = inputs_of(held);
    LhStamp with_logs = *stamp;

    with_logs.inputs = inputs;
    lh_document_begin(w, "longhaul.collective/1", &with_logs, NULL, true);
    lh_jsonw_array_begin(w, "runs");
    for (guint i = 0; i < held->runs->len; i++)
        write_held_run(w, run_at(held, i));
    lh_jsonw_array_end(w);
    lh_jsonw_uint(w, "rows_of_logs", held->logged);
    lh_jsonw_uint(w, "rows_inside", held->inside);
    write_causes(w, held);
    lh_jsonw_object_end(w);
}
