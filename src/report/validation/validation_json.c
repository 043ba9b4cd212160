/* SPDX-License-Identifier: Apache-2.0 */
#include "report/validation/validation_json.h"

#include "base/json/json.h"
#include "report/data/describe_options.h"
#include "report/data/document.h"
#include "report/validation/input_texts.h"

#include <math.h>

/* keeps values computed from these numbers, such as ratios, finite */
#define NUMBER_MAX 1e12
#define SECONDS_MIN 1e-12 /* minimum of durations */
#define SHA256_LENGTH 64

/* ---- the tables --------------------------------------------------------------------------------
 */

#define NUMBER(Struct, member, when, ...)                                                          \
    LH_FIELD_ROW(DOUBLE, Struct, member, #member, when, .min = -NUMBER_MAX, .max = NUMBER_MAX,     \
                 .description = __VA_ARGS__)
/* At least 0. */
#define SECONDS(Struct, member, when, ...)                                                         \
    LH_FIELD_ROW(DOUBLE, Struct, member, #member, when, .max = NUMBER_MAX,                         \
                 .description = __VA_ARGS__)
/* Greater than 0. */
#define FACTOR(Struct, member, most, ...)                                                          \
    LH_FIELD_ROW(DOUBLE, Struct, member, #member, ALWAYS, .min = G_MINDOUBLE, .max = (most),       \
                 .description = __VA_ARGS__)
/* At least 1. */
#define COUNT(Struct, member, when, ...)                                                           \
    LH_FIELD_ROW(UINT, Struct, member, #member, when, .min = 1, .description = __VA_ARGS__)

/* @key: key of the name. */
#define ERRORS(key)                                                                                \
    {                                                                                              \
        LH_FIELD_ROW(STRING, LhKernelErrors, kernel, key, ALWAYS, .description = NULL),            \
            COUNT(LhKernelErrors, ops, ALWAYS, NULL),                                              \
            SECONDS(LhKernelErrors, measured_s, ALWAYS, "Sum over the ops."),                      \
            SECONDS(LhKernelErrors, predicted_s, ALWAYS, "Predicted sum over the ops."),           \
            NUMBER(LhKernelErrors, share, ALWAYS, "Fraction of the time of all compute ops."),     \
            NUMBER(LhKernelErrors, error_median, ALWAYS,                                           \
                   "Median of predicted / measured - 1 over the ops."),                            \
            NUMBER(LhKernelErrors, error_worst, ALWAYS,                                            \
                   "Error of the op with the largest absolute error."),                            \
            { .name = NULL },                                                                      \
    }

static const LhField kernel_fields[] = ERRORS("kernel");
static const LhField tier_fields[] = ERRORS("tier");

/* A schedule. Members from `runs` on are set if it ran. */
typedef struct {
    const char *schedule, *refused;
    uint64_t rank; /* LH_FIELD_NO_UINT: all ran */
    double predicted_s;
    uint64_t runs;
    double measured_s, makespan_error, op_error, spread, start_s;
    int within;
    GArray *kernels, *tiers; /* of LhKernelErrors */
} ValidatedRow;

static void
init_row(void *row)
{
    *(ValidatedRow *)row = (ValidatedRow){ .rank = LH_FIELD_NO_UINT,
                                           .predicted_s = NAN,
                                           .measured_s = NAN,
                                           .makespan_error = NAN,
                                           .op_error = NAN,
                                           .spread = NAN,
                                           .start_s = NAN,
                                           .within = -1 };
}

static const LhField validated_row_fields[] = {
    LH_FIELD_ROW(STRING, ValidatedRow, schedule, "schedule", ALWAYS, .description = NULL),
    LH_FIELD_ROW(STRING, ValidatedRow, refused, "refused", OR_NULL,
                 .description = "Why it was not run."),
    LH_FIELD_ROW(UINT, ValidatedRow, rank, "rank", IF_ANY, .max = LH_RANKS_MAX - 1,
                 .description =
                     "The rank that ran alone; absent: all ranks ran. Times are of this rank."),
    SECONDS(ValidatedRow, predicted_s, IF_ANY, "Predicted makespan."),
    COUNT(ValidatedRow, runs, IF_ANY, "Number of counted runs."),
    SECONDS(ValidatedRow, measured_s, IF_ANY, "Measured makespan."),
    NUMBER(ValidatedRow, makespan_error, IF_ANY, "predicted / measured - 1"),
    NUMBER(ValidatedRow, op_error, IF_ANY,
           "Median of |predicted / measured - 1| over compute ops."),
    NUMBER(ValidatedRow, spread, IF_ANY, "(slowest - fastest) / fastest run."),
    SECONDS(ValidatedRow, start_s, IF_ANY,
            "Time until the last rank to finish has issued its first op."),
    LH_FIELD_ROW(TRUTH, ValidatedRow, within, "within", IF_ANY,
                 .description = "Whether the makespan and the median op of every judged kernel are "
                                "within the tolerance."),
    LH_FIELD_ROW(ARRAY, ValidatedRow, kernels, "kernels", IF_ANY, .fields = kernel_fields,
                 .element_size = sizeof(LhKernelErrors),
                 .description =
                     "Kernels, longest total time first; then exchanges and collectives."),
    LH_FIELD_ROW(ARRAY, ValidatedRow, tiers, "tiers", IF_ANY, .fields = tier_fields,
                 .element_size = sizeof(LhKernelErrors),
                 .description = "Exchanges by their highest tier."),
    { .name = NULL },
};

/* Kernels of a host, or messages between two. Hosts are numbered from 0; a peer has the larger
 * number. */
typedef struct {
    const char *host, *peer_host; /* NULL: kernels */
    uint64_t node, peer;
    double measured_s, predicted_s;
    bool slow;
} Host;

static const LhField host_fields[] = {
    LH_FIELD_ROW(STRING, Host, host, "host", ALWAYS, .description = NULL),
    LH_FIELD_ROW(UINT, Host, node, "node", ALWAYS, .description = "Number of the host, from 0."),
    LH_FIELD_ROW(STRING, Host, peer_host, "peer_host", IF_ANY,
                 .description = "Peer host of the messages; absent: kernels."),
    COUNT(Host, peer, IF_ANY, "Number of the peer host."),
    SECONDS(Host, measured_s, ALWAYS, NULL),
    SECONDS(Host, predicted_s, ALWAYS, NULL),
    LH_FIELD_ROW(BOOL, Host, slow, "slow", ALWAYS, .description = NULL),
    { .name = NULL },
};

typedef struct {
    int of; /* LhAttributionClass */
    double scale, error;
} Constant;

static const LhField constant_fields[] = {
    LH_FIELD_ROW(CHOICE, Constant, of, "class", ALWAYS, .choices = lh_attribution_names),
    FACTOR(Constant, scale, NUMBER_MAX,
           "Factor on the predicted times, or on the SMs held by messages."),
    SECONDS(Constant, error, ALWAYS, "Remaining error with this factor."),
    { .name = NULL },
};

typedef struct {
    double error;
    int best, alike;   /* LhAttributionClass; -1: none */
    GArray *constants; /* of Constant; NULL: nothing is explained */
} Explanation;

static const LhField explanation_fields[] = {
    SECONDS(Explanation, error, ALWAYS,
            "Mean of the logarithmic errors of compute ops, messages and makespans."),
    LH_FIELD_ROW(
        CHOICE, Explanation, best, "best", OR_NULL, .choices = lh_attribution_names,
        .description =
            "Class whose scaling leaves the smallest error; null: none removes a fifth of it."),
    LH_FIELD_ROW(CHOICE, Explanation, alike, "alike", OR_NULL, .choices = lh_attribution_names,
                 .description = "Another class that leaves nearly the same error."),
    LH_FIELD_ROW(ARRAY, Explanation, constants, "constants", ALWAYS, .fields = constant_fields,
                 .element_size = sizeof(Constant)),
    { .name = NULL },
};

typedef struct {
    const char *sha256;
    GPtrArray *lines;
} Prediction;

static const LhField prediction_fields[] = {
    LH_FIELD_ROW(STRING, Prediction, sha256, "sha256", ALWAYS, .min = SHA256_LENGTH,
                 .max = SHA256_LENGTH,
                 .description = "SHA-256 of all lines, each ending in a line feed."),
    LH_FIELD_ROW(STRINGS, Prediction, lines, "lines", ALWAYS,
                 .description = "Name of the schedule, SHA-256 of its program, makespan in ps."),
    { .name = NULL },
};

typedef struct {
    uint64_t cores, runs, runs_left_out;
    double error_median, error_worst, rank_correlation;
} Summary;

static const LhField summary_fields[] = {
    LH_FIELD_ROW(UINT, Summary, cores, "cores", IF_ANY, .min = 1, .max = UINT32_MAX,
                 .description = "Cores available to the process of rank 0."),
    LH_FIELD_ROW(UINT, Summary, runs, "runs", ALWAYS, .description = "Number of counted runs."),
    LH_FIELD_ROW(UINT, Summary, runs_left_out, "runs_left_out", ALWAYS,
                 .description = "Runs skipped because the budget was spent."),
    LH_FIELD_ROW(
        DOUBLE, Summary, error_median, "error_median", OR_NULL,
        .description =
            "Median of |predicted / measured - 1| of the makespans; null: nothing was measured."),
    LH_FIELD_ROW(DOUBLE, Summary, error_worst, "error_worst", OR_NULL,
                 .description = "Worst |predicted / measured - 1| of the makespans."),
    LH_FIELD_ROW(DOUBLE, Summary, rank_correlation, "rank_correlation", OR_NULL,
                 .description = "Spearman's rank correlation of predicted and measured makespans."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    const char *provenance, *backend, *kernels, *profile;
    double tolerance;
    int statistic;
    uint64_t repeat;
    bool interrupted;
    GArray *of_case; /* of LhFieldMember */
    Prediction prediction;
    Summary summary;
    GArray *rows, *hosts;         /* of ValidatedRow, Host */
    const Explanation *explained; /* written; NULL: none */
    Explanation explanation;      /* read */
    GPtrArray *files;             /* of LhInputText * */
} ValidationDocument;

static const char *const validation_schema[] = { "longhaul.validation/2", NULL };
static const char *const provenances[] = { "measured", NULL };

#define ROW(kind, member, key, when, ...)                                                          \
    LH_FIELD_ROW(kind, ValidationDocument, member, key, when, __VA_ARGS__)

/* Fields that are written and read. */
#define RESULTS                                                                                    \
    ROW(OBJECT, prediction, "prediction", ALWAYS, .fields = prediction_fields,                     \
        .description = "The prediction, made before the first schedule ran."),                     \
        ROW(OBJECT, summary, "summary", ALWAYS, .fields = summary_fields),                         \
        ROW(ARRAY, rows, "schedules", ALWAYS, .fields = validated_row_fields,                      \
            .element_size = sizeof(ValidatedRow), .element_init = init_row,                        \
            .description = "All requested schedules."),                                            \
        ROW(ARRAY, hosts, "hosts", ALWAYS, .fields = host_fields, .element_size = sizeof(Host),    \
            .description =                                                                         \
                "Kernels of each host's ranks, and messages between two hosts, with slow ones "    \
                "marked; empty with one process, or before anything was measured.")

const LhField lh_validation_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(ValidationDocument, head, validation_schema),
    LH_DOCUMENT_ASKED(ValidationDocument, head),
    ROW(STRING, provenance, "provenance", ALWAYS, .choices = provenances),
    FACTOR(ValidationDocument, tolerance, 1, "Tolerance, as a fraction."),
    ROW(STRING, backend, "backend", ALWAYS, .choices = lh_backend_names),
    ROW(STRING, kernels, "kernels", ALWAYS, .choices = lh_kernel_set_names,
        .description = "Kernel set."),
    ROW(STRING, profile, "profile", OR_NULL,
        .description = "The profile; null: constants of the data files."),
    ROW(CHOICE, statistic, "statistic", ALWAYS, .choices = lh_statistic_names,
        .description = "Statistic of repeated runs."),
    COUNT(ValidationDocument, repeat, ALWAYS, "Requested runs of each schedule."),
    ROW(BOOL, interrupted, "interrupted", ALWAYS,
        .description = "Whether it was interrupted before all runs were done."),
    ROW(MEMBERS, of_case, "case", ALWAYS,
        .description = "Ranks, pass, and sizes of the attention module."),
    RESULTS,
    ROW(POINTER, explained, "explanation", IF_ANY, .fields = explanation_fields,
        .description = "Class of constants that explains the error; absent before anything was "
                       "measured, and if the search would take too long."),
    ROW(POINTERS, files, "files", ALWAYS, .fields = lh_input_text_fields,
        .description = "Texts of the input files."),
    { .name = NULL },
};

static const LhField read_fields[] = {
    RESULTS,
    ROW(OBJECT, explanation, "explanation", IF_ANY, .fields = explanation_fields),
    { .name = NULL },
};

/* ---- written -----------------------------------------------------------------------------------
 */

/* Results borrow names and lists of their sources. Callers unref. */

static void
set_measured(ValidatedRow *row, const LhValidation *v, double tolerance)
{
    row->runs = v->runs;
    row->measured_s = v->measured_s;
    row->makespan_error = lh_validation_error(v);
    row->op_error = v->op_error;
    row->spread = v->spread;
    row->start_s = v->start_s;
    row->within = lh_validation_within(v, tolerance);
    row->kernels = v->kernels;
    row->tiers = v->tiers;
}

static GArray *
find_schedules(const LhValidated *validated, double tolerance)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(ValidatedRow));

    for (guint i = 0; i < validated->rows->len; i++) {
        const LhValidation *v = g_ptr_array_index(validated->rows, i);
        ValidatedRow row;

        init_row(&row);
        row.schedule = v->schedule;
        row.refused = v->refused;
        if (v->rank >= 0)
            row.rank = (uint64_t)v->rank;
        if (v->ranks > 0)
            row.predicted_s = v->predicted_s;
        if (v->refused == NULL && v->runs > 0)
            set_measured(&row, v, tolerance);
        g_array_append_val(rows, row);
    }
    return rows;
}

static GArray *
find_hosts(const LhSlowHosts *slow)
{
    GArray *hosts = g_array_new(FALSE, FALSE, sizeof(Host));

    for (guint i = 0; slow != NULL && i < slow->times->len; i++) {
        const LhHostTimes *t = &g_array_index(slow->times, LhHostTimes, i);
        Host host = { .host = slow->names[t->node],
                      .node = t->node,
                      .measured_s = t->measured_s,
                      .predicted_s = t->predicted_s,
                      .slow = t->slow };

        if (t->node != t->peer) {
            host.peer_host = slow->names[t->peer];
            host.peer = t->peer;
        }
        g_array_append_val(hosts, host);
    }
    return hosts;
}

static GPtrArray *
find_lines(const char *prediction)
{
    g_auto(GStrv) lines = g_strsplit(prediction, "\n", -1);
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++)
        g_ptr_array_add(found, g_strdup(lines[i]));
    return found;
}

static GArray *
find_constants(const LhAttributed *e)
{
    GArray *constants = g_array_new(FALSE, FALSE, sizeof(Constant));

    for (int i = 0; e != NULL && i < LH_ATTRIBUTION_CLASSES; i++) {
        const Constant constant = { i, e->classes[i].scale, e->classes[i].error };

        if (e->classes[i].applies)
            g_array_append_val(constants, constant);
    }
    return constants;
}

static Summary
find_summary(const LhValidated *validated)
{
    return (Summary){ .cores = validated->cores,
                      .runs = validated->runs,
                      .runs_left_out = validated->runs_left_out,
                      .error_median = validated->error_median,
                      .error_worst = validated->error_worst,
                      .rank_correlation = validated->rank_correlation };
}

void
lh_validate_json(const LhSetup *setup, const LhValidated *validated, const LhValidateParams *params,
                 double tolerance, const LhStamp *stamp, GString *out)
{
    g_auto(LhDocumentHead) head = lh_document_head(validation_schema[0], stamp, setup);
    g_autoptr(GPtrArray) lines = find_lines(validated->prediction);
    g_autoptr(GPtrArray) files = lh_input_texts(setup);
    g_autoptr(GArray) rows = find_schedules(validated, tolerance);
    g_autoptr(GArray) hosts = find_hosts(validated->hosts);
    g_autoptr(GArray) constants = find_constants(validated->explained);
    const LhAttributed *e = validated->explained;
    const Explanation explanation = { .error = e != NULL ? e->error : 0,
                                      .best = e != NULL ? e->best : -1,
                                      .alike = e != NULL && e->alike ? e->second : -1,
                                      .constants = constants };
    ValidationDocument document = {
        .head = head,
        .provenance = provenances[0],
        .tolerance = tolerance,
        .backend = params->backend->name,
        .kernels = params->backend->device->kernel_sets[params->kernel_set],
        .profile = setup->scenario->profile,
        .statistic = (int)params->statistic,
        .repeat = params->repeat,
        .interrupted = validated->interrupted,
        .of_case = lh_params_members(&setup->params),
        .prediction = { .sha256 = validated->prediction_sha256, .lines = lines },
        .summary = find_summary(validated),
        .rows = rows,
        .hosts = hosts,
        .explained = e != NULL ? &explanation : NULL,
        .files = files,
    };

    lh_json_encode_text(lh_validation_fields, &document, out);
    lh_field_members_free(document.of_case);
}

/* ---- read --------------------------------------------------------------------------------------
 */

static GArray *
take_errors(const GArray *read)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(LhKernelErrors));

    for (guint i = 0; read != NULL && i < read->len; i++) {
        LhKernelErrors row = g_array_index(read, LhKernelErrors, i);

        row.kernel = g_intern_string(row.kernel);
        g_array_append_val(errors, row);
    }
    return errors;
}

/* Value of a member; 0: absent. */
static double
number_of(double member)
{
    return isnan(member) ? 0 : member;
}

/* @ranks: number that ran; 0: not even predicted. @alone: the row's rank ran alone. */
static LhValidation *
take_row(const ValidatedRow *row, uint32_t ranks, bool alone)
{
    LhValidation *v = g_new0(LhValidation, 1);

    *v = (LhValidation){ .schedule = g_intern_string(row->schedule),
                         .refused = g_strdup(row->refused),
                         .measured_s = number_of(row->measured_s),
                         .predicted_s = number_of(row->predicted_s),
                         .spread = number_of(row->spread),
                         .start_s = number_of(row->start_s),
                         .op_error = number_of(row->op_error),
                         .runs = row->runs,
                         .ranks = ranks,
                         .rank = alone ? (int64_t)row->rank : -1,
                         .kernels = take_errors(row->kernels),
                         .tiers = take_errors(row->tiers) };
    return v;
}

/* Kernels of all hosts come first, then messages of pairs. */
static LhSlowHosts *
take_hosts(const LhJson *json, const GArray *read, GError **error)
{
    g_autoptr(LhSlowHosts) hosts = g_new0(LhSlowHosts, 1);

    while (hosts->nodes < read->len && g_array_index(read, Host, hosts->nodes).peer_host == NULL)
        hosts->nodes++;
    hosts->names = g_new0(char *, hosts->nodes + 1);
    hosts->times = g_array_new(FALSE, FALSE, sizeof(LhHostTimes));
    for (guint i = 0; i < read->len; i++) {
        const Host *h = &g_array_index(read, Host, i);
        const bool kernels = i < hosts->nodes;
        const LhHostTimes times = { .node = (uint32_t)h->node,
                                    .peer = (uint32_t)(kernels ? h->node : h->peer),
                                    .measured_s = h->measured_s,
                                    .predicted_s = h->predicted_s };
        g_autofree char *path = g_strdup_printf("hosts[%u]", i);

        if (kernels ? h->node != i
                    : h->peer_host == NULL || MAX(h->node, h->peer) >= hosts->nodes) {
            lh_json_error(
                json, path, error,
                "hosts are numbered from 0 on; their kernels come first, followed by pairs");
            return NULL;
        }
        if (kernels)
            hosts->names[i] = g_strdup(h->host);
        g_array_append_val(hosts->times, times);
    }
    lh_slow_hosts_judge(hosts);
    return g_steal_pointer(&hosts);
}

static LhAttributed *
take_explained(const Explanation *read)
{
    LhAttributed *e = g_new0(LhAttributed, 1);

    e->error = read->error;
    e->best = read->best;
    e->second = read->alike;
    e->alike = e->second >= 0;
    for (guint i = 0; i < read->constants->len; i++) {
        const Constant *c = &g_array_index(read->constants, Constant, i);

        e->classes[c->of] = (LhAttribution){ true, c->scale, c->error };
    }
    return e;
}

static char *
take_lines(const GPtrArray *lines)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)g_ptr_array_index(lines, i));
    return g_string_free(text, FALSE);
}

/* Rows that were predicted have a rank exactly if ranks ran @alone; other rows have none. */
static bool
take_rows(LhValidated *validated, const LhJson *json, const GArray *rows, uint32_t ranks,
          bool alone, GError **error)
{
    for (guint i = 0; i < rows->len; i++) {
        const ValidatedRow *row = &g_array_index(rows, ValidatedRow, i);
        g_autofree char *rank = g_strdup_printf("schedules[%u].rank", i);
        g_autofree char *measured = g_strdup_printf("schedules[%u].measured_s", i);
        g_autofree char *start = g_strdup_printf("schedules[%u].start_s", i);
        const bool predicted = !isnan(row->predicted_s), has_rank = row->rank != LH_FIELD_NO_UINT;

        if (has_rank != (alone && predicted) || (has_rank && row->rank >= ranks))
            return lh_json_error(json, rank, error,
                                 alone ? "a predicted schedule must have a rank below %u; others "
                                         "must have none"
                                       : "all %u ranks ran: no rank ran alone",
                                 ranks);
        if (row->runs > 0 && !(row->measured_s >= SECONDS_MIN))
            return lh_json_error(json, measured, error,
                                 "a schedule that ran took at least %g seconds", SECONDS_MIN);
        if (row->runs > 0 && fabs(row->measured_s - number_of(row->start_s)) < SECONDS_MIN)
            return lh_json_error(json, start, error,
                                 "a schedule that ran took longer than its start");
        g_ptr_array_add(validated->rows, take_row(row,
                                                  !predicted ? 0
                                                  : alone    ? 1
                                                             : ranks,
                                                  alone && predicted));
    }
    return true;
}

/* NULL with @error, also if a part is invalid. */
static LhValidated *
take(const LhJson *json, const LhSetup *setup, bool alone, const ValidationDocument *d,
     GError **error)
{
    g_autoptr(LhValidated) validated = lh_validated_new();

    validated->first = true;
    validated->prediction = take_lines(d->prediction.lines);
    validated->prediction_sha256 = g_strdup(d->prediction.sha256);
    validated->cores = (uint32_t)d->summary.cores;
    validated->runs = d->summary.runs;
    validated->runs_left_out = d->summary.runs_left_out;
    validated->error_median = d->summary.error_median;
    validated->error_worst = d->summary.error_worst;
    validated->rank_correlation = d->summary.rank_correlation;
    if (!take_rows(validated, json, d->rows, lh_params_ranks(&setup->params), alone, error))
        return NULL;
    if (d->explanation.constants != NULL)
        validated->explained = take_explained(&d->explanation);
    if (d->hosts->len > 0) {
        validated->hosts = take_hosts(json, d->hosts, error);
        if (validated->hosts == NULL)
            return NULL;
    }
    return g_steal_pointer(&validated);
}

LhValidated *
lh_validate_from_json(const LhJson *json, const LhSetup *setup, bool alone, GError **error)
{
    ValidationDocument d = {
        .summary = { .error_median = NAN, .error_worst = NAN, .rank_correlation = NAN },
        .explanation = { .best = -1, .alike = -1 },
    };
    LhValidated *validated = NULL;

    if (!lh_json_decode(json, read_fields, &d, true, error))
        return NULL;
    if (d.summary.runs > 0)
        validated = take(json, setup, alone, &d, error);
    else
        lh_json_error(json, "summary.runs", error,
                      "nothing has been measured yet: this is only the prediction");
    lh_json_clear(read_fields, &d);
    return validated;
}
