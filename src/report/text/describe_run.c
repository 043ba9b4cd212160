/* SPDX-License-Identifier: Apache-2.0 */
/* Output of run: errors, counts and times. Times are measured on this machine. */
#include "report/text/describe_run.h"

#include "base/escape.h"
#include "base/json/json_decode.h"
#include "report/base/text.h"
#include "report/data/describe_options.h"
#include "report/data/document.h"
#include "report/data/notes.h"
#include "report/text/describe.h"
#include "report/text/describe_critical.h"
#include "report/text/number_cells.h"
#include "report/text/path_json.h"

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

/* ---- sentences ---- */

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
            executed->same_bits   ? "bitwise equal"
            : executed->unordered ? ", which differ because these kernels add up in no fixed "
                                    "order; the last one is checked"
                                  : "DIFFERENT results");
    g_string_append_c(out, '\n');
}

/* Describes the cost of the check relative to the run. */
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
        g_string_append(
            out,
            "\nEvery rank's result agrees with that of one device in fp64, within the gates.\n");
        return;
    }
    g_string_append_printf(out,
                           "\nEvery rank's result agrees with that of one device in fp64, within "
                           "the gates, at the %u tokens of each that were checked.\n",
                           params->check_tokens);
    if (has_tensor(executed, "dk") && !has_tensor(executed, "lse") && !p->attention.linear)
        g_string_append_printf(out,
                               "Only one head of dk and dv was checked: they need the lse of all "
                               "queries, which %s does not return.\n",
                               name);
}

/* ---- critical path ---- */

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

typedef struct {
    const char *tensor; /* borrowed */
    double rel_l2, mean, mean_gate, row, row_gate;
    uint64_t rounded;
    bool within;
} TensorError;

static const LhField tensor_error_fields[] = {
    LH_FIELD_ROW(STRING, TensorError, tensor, "tensor", ALWAYS,
                 .description = "Tensor, such as o, lse, dq, dk or dv."),
    LH_FIELD_ROW(DOUBLE, TensorError, rel_l2, "rel_l2", OR_NULL,
                 .description = "Relative L2 error of the whole tensor; null: not a number."),
    LH_FIELD_ROW(UINT, TensorError, rounded, "rounded", ALWAYS,
                 .description = "Number of roundings in the unit of mean and row."),
    LH_FIELD_ROW(DOUBLE, TensorError, mean, "mean", OR_NULL,
                 .description = "Root mean square error of all rows, in units of rounding."),
    LH_FIELD_ROW(DOUBLE, TensorError, mean_gate, "mean_gate", ALWAYS,
                 .description = "Limit of mean."),
    LH_FIELD_ROW(DOUBLE, TensorError, row, "row", OR_NULL,
                 .description = "Error of the worst row, in units of rounding."),
    LH_FIELD_ROW(DOUBLE, TensorError, row_gate, "row_gate", ALWAYS, .description = "Limit of row."),
    LH_FIELD_ROW(BOOL, TensorError, within, "within", ALWAYS,
                 .description = "Whether both errors are within their limits."),
    { .name = NULL },
};

static const LhField count_fields[] = {
    LH_FIELD_ROW(UINT, LhCount, counted, "executed", ALWAYS,
                 .description = "Count of the executor, over all ranks."),
    LH_FIELD_ROW(UINT, LhCount, verified, "verified", ALWAYS,
                 .description = "Count of the verifier."),
    LH_FIELD_ROW(UINT, LhCount, simulated, "simulated", ALWAYS,
                 .description = "Count of the simulator."),
    LH_FIELD_ROW(BOOL, LhCount, equal, "equal", ALWAYS,
                 .description = "Whether they are equal on every rank."),
    { .name = NULL },
};

static const LhField rank_fields[] = {
    LH_FIELD_ROW(UINT, LhRunRank, bytes_sent, "bytes_sent", ALWAYS,
                 .description = "Bytes of messages that arrived."),
    LH_FIELD_ROW(UINT, LhRunRank, messages, "messages", ALWAYS, .description = "Sent."),
    LH_FIELD_ROW(UINT, LhRunRank, flops, "flops", ALWAYS,
                 .description = "Flops of the attention kernels called."),
    LH_FIELD_ROW(UINT, LhRunRank, peak_bytes, "peak_bytes", ALWAYS,
                 .description = "Peak of the rank's buffers, in the order of the host."),
    LH_FIELD_ROW(UINT, LhRunRank, ops, "ops", ALWAYS, .description = NULL),
    LH_FIELD_SECONDS_ROW(INT, LhRunRank, busy_ps, "busy_s", ALWAYS,
                         .description = "Time in which a kernel was running."),
    LH_FIELD_SECONDS_ROW(INT, LhRunRank, finish_ps, "finish_s", ALWAYS,
                         .description = "Completion time of its last op."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    const char *provenance, *schedule, *backend, *bootstrap, *kernels, *input_kind, *injected;
    GArray *program; /* of LhFieldMember */
    bool ok, same_bits;
    const char *outputs_sha256;
    GArray *makespans; /* of uint64_t: ps */
    double check_s;
    GArray *errors; /* of TensorError */
    LhCount bytes_sent, flops, peak_bytes;
    GArray *ranks; /* of LhRunRank */
    const LhPathParts *critical_path;
} RunDocument;

static const char *const run_schema[] = { "longhaul.run/1", NULL };
static const char *const run_provenances[] = { "measured", NULL };

#define ROW(kind, member, key, when, ...)                                                          \
    LH_FIELD_ROW(kind, RunDocument, member, key, when, __VA_ARGS__)

const LhField lh_run_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(RunDocument, head, run_schema),
    LH_DOCUMENT_ASKED(RunDocument, head),
    ROW(STRING, provenance, "provenance", ALWAYS, .choices = run_provenances,
        .description = "Measured on this machine."),
    ROW(STRING, schedule, "schedule", ALWAYS, .description = "Name of the schedule or program."),
    ROW(STRING, backend, "backend", ALWAYS, .choices = lh_backend_names),
    ROW(STRING, bootstrap, "bootstrap", ALWAYS, .choices = lh_control_names,
        .description = "How the processes rendezvous."),
    ROW(STRING, kernels, "kernels", ALWAYS, .choices = lh_kernel_set_names,
        .description = "Kernel set."),
    ROW(STRING, input_kind, "input_kind", ALWAYS, .choices = lh_input_names),
    ROW(STRING, injected, "injected", OR_NULL, .description = "Injected faults; null: none."),
    ROW(MEMBERS, program, "program", ALWAYS,
        .description =
            "Ranks, pass, sizes of the attention module, mask, and options of the program."),
    ROW(BOOL, ok, "ok", ALWAYS,
        .description = "Whether errors are within their limits, counts are equal, and bits are "
                       "equal where that is promised."),
    ROW(STRING, outputs_sha256, "outputs_sha256", ALWAYS,
        .description = "SHA-256 of the outputs of all ranks, in order."),
    ROW(BOOL, same_bits, "same_bits", ALWAYS,
        .description = "Whether all runs had the same outputs."),
    LH_FIELD_SECONDS_ROW(UINTS, RunDocument, makespans, "makespans_s", ALWAYS,
                         .description = "Time of each run."),
    ROW(DOUBLE, check_s, "check_s", ALWAYS,
        .description = "Time of the reference and of comparing the last run with it."),
    ROW(ARRAY, errors, "errors", ALWAYS, .fields = tensor_error_fields,
        .element_size = sizeof(TensorError),
        .description = "Errors of every tensor that the fp64 reference computes."),
    ROW(OBJECT, bytes_sent, "bytes_sent", ALWAYS, .fields = count_fields),
    ROW(OBJECT, flops, "flops", ALWAYS, .fields = count_fields,
        .description = "Flops of attention."),
    ROW(OBJECT, peak_bytes, "peak_bytes", ALWAYS, .fields = count_fields),
    ROW(ARRAY, ranks, "ranks", ALWAYS, .fields = rank_fields, .element_size = sizeof(LhRunRank),
        .description = "Counts of each rank."),
    ROW(POINTER, critical_path, "critical_path", IF_ANY, .fields = lh_executed_path_fields,
        .description = "The critical path, if requested."),
    { .name = NULL },
};

/* Array of TensorError; caller unrefs, as for the following. */
static GArray *
find_tensor_errors(const LhExecuted *executed)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(TensorError));

    for (uint32_t i = 0; i < executed->errors.rows_count; i++) {
        const LhErrorRow *row = &executed->errors.rows[i];
        const TensorError error = { .tensor = row->name,
                                    .rel_l2 = row->rel_l2,
                                    .mean = row->mean,
                                    .mean_gate = LH_TOLERANCE_MEAN,
                                    .row = row->row,
                                    .row_gate = LH_TOLERANCE_ROW,
                                    .rounded = row->rounded,
                                    .within = row->ok };

        g_array_append_val(errors, error);
    }
    return errors;
}

static GArray *
array_of(gconstpointer data, guint size, guint64 count)
{
    GArray *array = g_array_new(FALSE, FALSE, size);

    return g_array_append_vals(array, data, (guint)count);
}

void
lh_run_json(const LhSetup *setup, const LhExecuted *executed, const LhExecuteParams *params,
            const LhExecutedPath *path, const LhStamp *stamp, GString *out)
{
    g_auto(LhDocumentHead) head = lh_document_head(run_schema[0], stamp, setup);
    g_autoptr(GArray) makespans =
        array_of(executed->makespans_ps, sizeof(LhTime), executed->repeats);
    g_autoptr(GArray) errors = find_tensor_errors(executed);
    g_autoptr(GArray) ranks =
        array_of(executed->run->ranks, sizeof(LhRunRank), executed->run->ranks_count);
    g_autoptr(LhPathParts) parts =
        path != NULL ? lh_path_parts_new(path->critical, path->path) : NULL;
    const RunDocument document = {
        .head = head,
        .provenance = run_provenances[0],
        .schedule = executed->program->name,
        .backend = params->backend->name,
        .bootstrap = lh_control_resolve(params->backend->control)->name,
        .kernels = params->backend->device->kernel_sets[params->kernel_set],
        .input_kind = lh_input_names[params->inputs],
        .injected = params->inject,
        .program = lh_params_members(&executed->program->params),
        .ok = lh_executed_ok(executed),
        .same_bits = executed->same_bits,
        .outputs_sha256 = executed->digest,
        .makespans = makespans,
        .check_s = executed->check_s,
        .errors = errors,
        .bytes_sent = executed->bytes_sent,
        .flops = executed->flops,
        .peak_bytes = executed->peak_bytes,
        .ranks = ranks,
        .critical_path = parts,
    };

    lh_json_encode_text(lh_run_fields, &document, out);
    lh_field_members_free(document.program);
}
