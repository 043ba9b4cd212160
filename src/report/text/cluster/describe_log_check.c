/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/cluster/describe_log_check.h"

#include "report/base/text.h"
#include "report/text/cluster/log_check_values.h"

#define US_PER_S 1e6

/* Number of links with the same load as the first one. */
static guint
equal_loads(const LhLogCheckRun *run)
{
    guint count = 0;

    while (count < run->loads->len && lh_log_check_load(run, count)->s_per_byte >=
                                          lh_log_check_load(run, 0)->s_per_byte * (1 - 1e-9))
        count++;
    return count;
}

/* ---- cells ---- */

/* Times with as many decimals as nccl-tests prints: fewer for longer ones. */
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
    const double s = row->time.seconds, wide = 1 + row->time.error,
                 bus = lh_log_check_bus_share(run);
    char a[LH_TEXT_SIZE], b[LH_TEXT_SIZE];

    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, row->bytes);
    lh_table_cell(t, us_text(s, a), NULL);
    add_range(t, us_text(s / wide, a), us_text(s * wide, b));
    lh_table_cell(t, rate_text(lh_log_check_algbw(row, s), a), NULL);
    lh_table_cell(t, rate_text(bus * lh_log_check_algbw(row, s), a), NULL);
    add_range(t, rate_text(bus * lh_log_check_algbw(row, s * wide), a),
              rate_text(bus * lh_log_check_algbw(row, s / wide), b));
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
        const LhLogCheckRow *row = lh_log_check_row(run, i);

        lh_table_row(t);
        add_held_times(t, run, row);
        if (run->log == NULL)
            continue;
        lh_table_cell(t, us_text(row->log_s, buffer), NULL);
        lh_table_cell(t, rate_text(row->log_s / row->time.seconds, buffer), NULL);
        lh_table_cell(t, lh_log_check_verdict(row) != NULL ? lh_log_check_verdict(row) : "", NULL);
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
        g_autofree char *name = lh_log_check_load_name(run, lh_log_check_load(run, i));

        lh_table_row(t);
        lh_table_cell(t, name, NULL);
        lh_table_cell(
            t, rate_text(lh_log_check_busbw_allowed(run, lh_log_check_load(run, i)), buffer), NULL);
    }
    return t;
}

/* ---- sentences ---- */

static const char *
plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Appends "pcie up, node 0, index 0 (of 64 PCIe, 64 NIC links that carry as much)". */
static void
describe_limit(const LhLogCheckRun *run, GString *out)
{
    const LhSetup *setup = run->single->setup;
    const guint equal = equal_loads(run);
    guint links[LH_TIERS] = { 0 };
    g_autofree char *name = lh_log_check_load_name(run, lh_log_check_load(run, 0));
    const char *before = " (of ";

    for (guint i = 0; i < equal; i++) {
        const uint32_t link = lh_log_check_load(run, i)->link;

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
    g_string_append(out, equal > 1 ? " links with the same load)" : "");
}

static void
describe_run(const LhLogCheckRun *run, GString *out)
{
    const LhNcclTest *s = run->single;
    char buffer[LH_TEXT_SIZE];

    g_string_append_printf(
        out,
        "%s on %" G_GUINT64_FORMAT " ranks, %" G_GUINT64_FORMAT
        " node%s of %s: links allow %s GB/s of busbw; the limit is ",
        s->op->name, s->ranks, s->nodes, plural(s->nodes), s->setup->topology->name,
        rate_text(lh_log_check_busbw_allowed(run, lh_log_check_load(run, 0)), buffer));
    describe_limit(run, out);
    g_string_append(out, ".\n");
    if (run->log != NULL)
        g_string_append_printf(out, "Log: %s (%s%s%s).\n", run->log->file, run->log->program,
                               run->log->nccl != NULL ? ", NCCL " : "",
                               run->log->nccl != NULL ? run->log->nccl : "");
}

/* Appends "as if node.nics.bandwidth were 0.5 of its value (24 GB/s instead of 48 GB/s)". */
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
    g_string_append_printf(out, "as if %s were %.3g %s its value (%s instead of %s)",
                           cause->lever->path, then / now, then < now ? "of" : "times", after,
                           before);
}

static void
describe_causes(const LhLogCheck *held, GString *out)
{
    const LhTopology *t = lh_log_check_run(held, 0)->single->setup->topology;

    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);

        g_string_append(out, i == 0 ? "Possible cause: " : "Or: ");
        if (cause->lever != NULL)
            describe_lever(t, cause, out);
        else
            g_string_append_printf(out, "as with %s", cause->way);
        g_string_append_printf(out, ": %u of %u rows are within their error bars then.\n",
                               cause->inside, held->logged);
    }
    if (held->causes->len == 0)
        g_string_append(out, "No single value of the topology file explains the others.\n");
}

static void
describe_logs(const LhLogCheck *held, GString *out)
{
    if (held->logged == 0)
        return;
    g_string_append_printf(out, "\n%u of %u row%s of the log%s %s within %s error bar%s.\n",
                           held->inside, held->logged, plural(held->logged),
                           plural(held->runs->len), held->logged == 1 ? "is" : "are",
                           held->logged == 1 ? "its" : "their", plural(held->logged));
    if (held->inside < held->logged)
        describe_causes(held, out);
}

void
lh_describe_log_check(const LhLogCheck *held, bool links, LhFormat format, GString *out)
{
    gsize from;

    for (guint i = 0; i < held->runs->len; i++) {
        g_autoptr(LhTable) rows = table_of_run(lh_log_check_run(held, i));
        g_autoptr(LhTable) loads = table_of_links(lh_log_check_run(held, i));

        if (i > 0)
            g_string_append_c(out, '\n');
        from = out->len;
        describe_run(lh_log_check_run(held, i), out);
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
