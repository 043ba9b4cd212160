/* SPDX-License-Identifier: Apache-2.0 */
/* Runs with real data, reported. Times are measured on this machine. */
#include "report/text/describe_run.h"

#include "base/escape.h"
#include "report/base/text.h"
#include "report/data/describe_options.h"
#include "report/data/document.h"
#include "report/data/notes.h"
#include "report/text/describe.h"
#include "report/text/describe_critical.h"
#include "report/text/number_cells.h"

#include <math.h>
#include <string.h>

/* ---- tables ---- */

static void
number_cell(LhTable *table, double value, const char *format)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    char text[G_ASCII_DTOSTR_BUF_SIZE];

    if (!isfinite(value)) {
        lh_table_cell(table, isnan(value) ? "nan" : "inf", NULL);
        return;
    }
    g_ascii_formatd(text, sizeof(text), format, value);
    lh_table_cell(table, text, lh_double_to_text(value, exact));
}

LhTable *
lh_describe_errors(const LhExecuted *executed)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "tensor", "tensor", NULL, false);
    lh_table_column(table, "rel_l2", "rel L2", NULL, true);
    lh_table_column(table, "rounded", "rounded", NULL, true);
    lh_table_column(table, "mean", "mean, units", NULL, true);
    lh_table_column(table, "mean_gate", "gate", NULL, true);
    lh_table_column(table, "row", "worst row, units", NULL, true);
    lh_table_column(table, "row_gate", "gate", NULL, true);
    lh_table_column(table, "within", "within", NULL, false);
    for (uint32_t i = 0; i < executed->errors.rows_count; i++) {
        const LhErrorRow *row = &executed->errors.rows[i];

        lh_table_row(table);
        lh_table_cell(table, row->name, NULL);
        number_cell(table, row->rel_l2, "%.2e");
        lh_cell_count(table, row->rounded);
        number_cell(table, row->mean, "%.3f");
        number_cell(table, LH_TOLERANCE_MEAN, "%g");
        number_cell(table, row->row, "%.3f");
        number_cell(table, LH_TOLERANCE_ROW, "%g");
        lh_table_cell(table, row->ok ? "yes" : "NO", NULL);
    }
    return table;
}

static void
count_row(LhTable *table, const char *name, const LhCount *count)
{
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_cell_count(table, count->counted);
    lh_cell_count(table, count->verified);
    lh_cell_count(table, count->simulated);
    lh_table_cell(table, count->equal ? "yes" : "NO", NULL);
}

LhTable *
lh_describe_counts(const LhExecuted *executed)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "count", "all ranks", NULL, false);
    lh_table_column(table, "counted", "executed", NULL, true);
    lh_table_column(table, "verified", "verified", NULL, true);
    lh_table_column(table, "simulated", "simulated", NULL, true);
    lh_table_column(table, "equal", "equal on every rank", NULL, false);
    count_row(table, "bytes sent", &executed->bytes_sent);
    count_row(table, "attention flops", &executed->flops);
    count_row(table, "peak bytes", &executed->peak_bytes);
    return table;
}

/* ---- words ---- */

static int
by_time(gconstpointer a, gconstpointer b)
{
    const LhTime x = *(const LhTime *)a, y = *(const LhTime *)b;

    return x < y ? -1 : x > y;
}

static LhTime
median_ps(const LhExecuted *executed)
{
    g_autofree LhTime *sorted =
        g_memdup2(executed->makespans_ps, executed->repeats * sizeof(LhTime));

    qsort(sorted, executed->repeats, sizeof(LhTime), by_time);
    return sorted[executed->repeats / 2];
}

static void
describe_time(const LhExecuted *executed, GString *out)
{
    const LhTime median = median_ps(executed);
    g_autofree char *time = lh_format_time(median);
    g_autofree char *rate =
        lh_format_flops((double)executed->flops.counted / ((double)median / (double)LH_PS_PER_S));

    g_string_append_printf(out, "%s%s, %s of attention (measured on this machine)",
                           executed->repeats > 1 ? "median " : "", time, rate);
    if (executed->repeats > 1 || !executed->same_bits)
        g_string_append_printf(
            out, "; %" G_GUINT64_FORMAT " run%s%s, %s", executed->repeats,
            executed->repeats > 1 ? "s" : "", executed->same_bits ? "" : " and what ran before",
            executed->same_bits   ? "equal to the bit"
            : executed->unordered ? "which differ, as these kernels add up in no fixed order; the "
                                    "last one is checked"
                                  : "DIFFERENT results");
    g_string_append_c(out, '\n');
}

/* Beside the run, so that one sees what is worth waiting for. */
static void
describe_check(const LhExecuted *executed, GString *out)
{
    const double run_s = (double)median_ps(executed) / (double)LH_PS_PER_S;
    g_autofree char *time = lh_format_time((LhTime)(executed->check_s * (double)LH_PS_PER_S));
    char ratio[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf(
        out, "checked in %s, %s times the run\n", time,
        g_ascii_formatd(ratio, sizeof(ratio), "%.2f", executed->check_s / run_s));
}

void
lh_describe_run(const LhSetup *setup, const LhExecuted *executed, const LhExecuteParams *params,
                GString *out)
{
    const LhProgramParams *p = &executed->program->params;
    const LhAttention *a = &p->attention;
    g_autofree char *mask = lh_describe_mask(&p->mask);
    g_autofree char *record = lh_describe_record(executed->program);
    g_autofree char *options = lh_escaped_line(record);
    g_autofree char *name = lh_escaped_line(executed->program->name);
    g_autofree char *groups = lh_describe_groups(p);
    const LhControl *control = lh_control_resolve(params->backend->control);
    const bool alone = control == &lh_control_single;
    g_autoptr(GString) model = g_string_new(NULL);

    if (setup->model_defaulted)
        lh_describe_model(setup, model);
    g_string_append_printf(
        out,
        "%s on %s, executed (backend %s%s%s, kernels %s, inputs %s, seed %" G_GUINT64_FORMAT
        "%s%s)%s\n%" G_GUINT64_FORMAT
        " tokens, batch %u, %u heads, %u groups, d %u, %s, %s%s, %s%s%s\n",
        name, groups, params->backend->name, alone ? "" : ", bootstrap ",
        alone ? "" : control->name, params->backend->device->kernel_sets[params->kernel_set],
        lh_input_names[params->inputs], setup->scenario->seed,
        params->inject != NULL ? ", injected " : "", params->inject != NULL ? params->inject : "",
        model->str, a->seq_length, a->batch, a->heads, a->groups, a->head_dim,
        lh_dtype_names[a->dtype], a->linear ? "linear, " : "", mask, lh_pass_names[p->pass - 1],
        options[0] != '\0' ? "; " : "", options);
    lh_describe_notes(setup->model, out);
    lh_describe_link_notes(setup, out);
    describe_time(executed, out);
    describe_check(executed, out);
    g_string_append_printf(out, "outputs %s\n", executed->digest);
}

static bool
has_tensor(const LhExecuted *executed, const char *name)
{
    for (uint32_t i = 0; i < executed->errors.rows_count; i++)
        if (strcmp(executed->errors.rows[i].name, name) == 0)
            return true;
    return false;
}

void
lh_describe_outcome(const LhExecuted *executed, const LhExecuteParams *params, GString *out)
{
    const LhProgramParams *p = &executed->program->params;
    g_autofree char *name = lh_escaped_line(executed->program->name);

    if (!lh_executed_ok(executed)) {
        g_string_append(out, "\nThe results of this run are WRONG.\n");
        return;
    }
    if (params->check_tokens == 0) {
        g_string_append(out, "\nEvery rank's result agrees with that of one device in fp64, within "
                             "the gates.\n");
        return;
    }
    g_string_append_printf(
        out,
        "\nEvery rank's result agrees with that of one device in fp64, within the "
        "gates, at the %u tokens of each that were checked.\n",
        params->check_tokens);
    if (has_tensor(executed, "dk") && !has_tensor(executed, "lse") && !p->attention.linear)
        g_string_append_printf(out,
                               "Of dk and dv one head was checked: they take the lse of all "
                               "queries, and %s does not put it out.\n",
                               name);
}

/* ---- what made the time ---- */

void
lh_describe_executed_path(const LhExecutedPath *path, LhFormat format, GString *out)
{
    static LhTable *(*const tables[])(const LhCritical *) = {
        lh_describe_path_resources, lh_describe_path_phases, lh_describe_path_ranks,
        lh_describe_slack,          lh_describe_longest_ops,
    };

    if (path == NULL) {
        g_string_append(out, "\nNo op ran on a stream: there is no critical path.\n");
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(tables); i++) {
        g_autoptr(LhTable) table = tables[i](path->critical);

        g_string_append_c(out, '\n');
        lh_table_print(table, format, out);
    }
}

/* ---- JSON ---- */

static void
write_tensor_errors(LhJsonWriter *w, const LhExecuted *executed)
{
    lh_jsonw_array_begin(w, "errors");
    for (uint32_t i = 0; i < executed->errors.rows_count; i++) {
        const LhErrorRow *row = &executed->errors.rows[i];

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "tensor", row->name);
        lh_jsonw_double_or_null(w, "rel_l2", row->rel_l2);
        lh_jsonw_uint(w, "rounded", row->rounded);
        lh_jsonw_double_or_null(w, "mean", row->mean);
        lh_jsonw_double(w, "mean_gate", LH_TOLERANCE_MEAN);
        lh_jsonw_double_or_null(w, "row", row->row);
        lh_jsonw_double(w, "row_gate", LH_TOLERANCE_ROW);
        lh_jsonw_bool(w, "within", row->ok);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_count(LhJsonWriter *w, const char *key, const LhCount *count)
{
    lh_jsonw_object_begin(w, key);
    lh_jsonw_uint(w, "executed", count->counted);
    lh_jsonw_uint(w, "verified", count->verified);
    lh_jsonw_uint(w, "simulated", count->simulated);
    lh_jsonw_bool(w, "equal", count->equal);
    lh_jsonw_object_end(w);
}

static void
write_run_ranks(LhJsonWriter *w, const LhRunResult *run)
{
    lh_jsonw_array_begin(w, "ranks");
    for (uint32_t r = 0; r < run->ranks_count; r++) {
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_uint(w, "bytes_sent", run->ranks[r].bytes_sent);
        lh_jsonw_uint(w, "messages", run->ranks[r].messages);
        lh_jsonw_uint(w, "flops", run->ranks[r].flops);
        lh_jsonw_uint(w, "peak_bytes", run->ranks[r].peak_bytes);
        lh_jsonw_uint(w, "ops", run->ranks[r].ops);
        lh_jsonw_seconds(w, "busy_s", run->ranks[r].busy_ps);
        lh_jsonw_seconds(w, "finish_s", run->ranks[r].finish_ps);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_program(LhJsonWriter *w, const LhProgram *program)
{
    lh_jsonw_object_begin(w, "program");
    lh_jsonw_uint(w, "ranks", lh_program_ranks(program));
    lh_jsonw_string(w, "pass", lh_pass_names[program->params.pass - 1]);
    lh_params_json(w, &program->params);
    lh_jsonw_object_end(w);
}

void
lh_run_json(const LhSetup *setup, const LhExecuted *executed, const LhExecuteParams *params,
            const LhExecutedPath *path, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);

    lh_document_begin(w, "longhaul.run/1", stamp, setup, true);
    lh_jsonw_string(w, "provenance", "measured");
    lh_jsonw_string(w, "schedule", executed->program->name);
    lh_jsonw_string(w, "backend", params->backend->name);
    lh_jsonw_string(w, "bootstrap", lh_control_resolve(params->backend->control)->name);
    lh_jsonw_string(w, "kernels", params->backend->device->kernel_sets[params->kernel_set]);
    lh_jsonw_string(w, "input_kind", lh_input_names[params->inputs]);
    lh_jsonw_string(w, "injected", params->inject);
    write_program(w, executed->program);
    lh_jsonw_bool(w, "ok", lh_executed_ok(executed));
    lh_jsonw_string(w, "outputs_sha256", executed->digest);
    lh_jsonw_bool(w, "same_bits", executed->same_bits);
    lh_jsonw_array_begin(w, "makespans_s");
    for (uint64_t i = 0; i < executed->repeats; i++)
        lh_jsonw_seconds(w, NULL, executed->makespans_ps[i]);
    lh_jsonw_array_end(w);
    lh_jsonw_double(w, "check_s", executed->check_s);
    write_tensor_errors(w, executed);
    write_count(w, "bytes_sent", &executed->bytes_sent);
    write_count(w, "flops", &executed->flops);
    write_count(w, "peak_bytes", &executed->peak_bytes);
    write_run_ranks(w, executed->run);
    if (path != NULL) {
        lh_jsonw_object_begin(w, "critical_path");
        lh_critical_members(w, path->critical, path->path);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_object_end(w);
}
