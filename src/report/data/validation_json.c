/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/validation_json.h"

#include "base/files/data_files.h"
#include "base/files/file_input.h"
#include "base/json/json.h"
#include "report/data/describe_options.h"
#include "report/data/document.h"

#include <math.h>

#define VALIDATION_SCHEMA "longhaul.validation/2"

/* --- written ------------------------------------------------------------------------------------
 */

/* Kernels of hosts and messages of pairs, as rows of numbers of nodes. */
static void
write_hosts(LhJsonWriter *w, const LhSlowHosts *hosts)
{
    lh_jsonw_array_begin(w, "hosts");
    for (guint i = 0; hosts != NULL && i < hosts->times->len; i++) {
        const LhHostTimes *t = &g_array_index(hosts->times, LhHostTimes, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "host", hosts->names[t->node]);
        lh_jsonw_uint(w, "node", t->node);
        if (t->node != t->peer) {
            lh_jsonw_string(w, "peer_host", hosts->names[t->peer]);
            lh_jsonw_uint(w, "peer", t->peer);
        }
        lh_jsonw_double(w, "measured_s", t->measured_s);
        lh_jsonw_double(w, "predicted_s", t->predicted_s);
        lh_jsonw_bool(w, "slow", t->slow);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_errors(LhJsonWriter *w, const char *key, const char *name, const GArray *rows)
{
    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < rows->len; i++) {
        const LhKernelErrors *row = &g_array_index(rows, LhKernelErrors, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, name, row->kernel);
        lh_jsonw_uint(w, "ops", row->ops);
        lh_jsonw_double(w, "measured_s", row->measured_s);
        lh_jsonw_double(w, "predicted_s", row->predicted_s);
        lh_jsonw_double(w, "share", row->share);
        lh_jsonw_double(w, "error_median", row->error_median);
        lh_jsonw_double(w, "error_worst", row->error_worst);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_measured(LhJsonWriter *w, const LhValidation *v, double tolerance)
{
    lh_jsonw_uint(w, "runs", v->runs);
    lh_jsonw_double(w, "measured_s", v->measured_s);
    lh_jsonw_double(w, "makespan_error", lh_validation_error(v));
    lh_jsonw_double(w, "op_error", v->op_error);
    lh_jsonw_double(w, "spread", v->spread);
    lh_jsonw_double(w, "start_s", v->start_s);
    lh_jsonw_bool(w, "within", lh_validation_within(v, tolerance));
    write_errors(w, "kernels", "kernel", v->kernels);
    write_errors(w, "tiers", "tier", v->tiers);
}

static void
write_schedules(LhJsonWriter *w, const LhValidated *validated, double tolerance)
{
    lh_jsonw_array_begin(w, "schedules");
    for (guint i = 0; i < validated->rows->len; i++) {
        const LhValidation *v = g_ptr_array_index(validated->rows, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "schedule", v->schedule);
        lh_jsonw_string(w, "refused", v->refused);
        if (v->rank >= 0)
            lh_jsonw_uint(w, "rank", (uint64_t)v->rank);
        if (v->ranks > 0)
            lh_jsonw_double(w, "predicted_s", v->predicted_s);
        if (v->refused == NULL && v->runs > 0)
            write_measured(w, v, tolerance);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_prediction(LhJsonWriter *w, const LhValidated *validated)
{
    g_auto(GStrv) lines = g_strsplit(validated->prediction, "\n", -1);

    lh_jsonw_object_begin(w, "prediction");
    lh_jsonw_string(w, "sha256", validated->prediction_sha256);
    lh_jsonw_array_begin(w, "lines");
    for (guint i = 0; lines[i] != NULL && lines[i][0] != '\0'; i++)
        lh_jsonw_string(w, NULL, lines[i]);
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

static void
write_summary(LhJsonWriter *w, const LhValidated *validated)
{
    lh_jsonw_object_begin(w, "summary");
    if (validated->cores != 0)
        lh_jsonw_uint(w, "cores", validated->cores);
    lh_jsonw_uint(w, "runs", validated->runs);
    lh_jsonw_uint(w, "runs_left_out", validated->runs_left_out);
    lh_jsonw_double_or_null(w, "error_median", validated->error_median);
    lh_jsonw_double_or_null(w, "error_worst", validated->error_worst);
    lh_jsonw_double_or_null(w, "rank_correlation", validated->rank_correlation);
    lh_jsonw_object_end(w);
}

static void
write_explained(LhJsonWriter *w, const LhAttributed *e)
{
    if (e == NULL)
        return;
    lh_jsonw_object_begin(w, "explanation");
    lh_jsonw_double(w, "error", e->error);
    lh_jsonw_string(w, "best", e->best < 0 ? NULL : lh_attribution_names[e->best]);
    lh_jsonw_string(w, "alike", e->alike ? lh_attribution_names[e->second] : NULL);
    lh_jsonw_array_begin(w, "constants");
    for (int i = 0; i < LH_ATTRIBUTION_CLASSES; i++) {
        const LhAttribution *x = &e->classes[i];

        if (!x->applies)
            continue;
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "class", lh_attribution_names[i]);
        lh_jsonw_double(w, "scale", x->scale);
        lh_jsonw_double(w, "error", x->error);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

/* The text of every file that the prediction was made of. One that cannot be read any more is left
 * out: its checksum stays among the inputs. */
static void
write_files(LhJsonWriter *w, const LhSetup *setup)
{
    g_autofree char *data = lh_data_dir();

    lh_jsonw_array_begin(w, "files");
    for (guint i = 0; i < setup->inputs->len; i++) {
        const LhInput *input = g_ptr_array_index(setup->inputs, i);
        g_autofree char *there = g_build_filename(data, input->path, NULL);
        g_autofree char *text = NULL;
        g_autofree char *sha256 = NULL;
        gsize length;

        text = lh_input_read(input->path, LH_JSON_BYTES_MAX, &length, NULL);
        if (text == NULL)
            text = lh_input_read(there, LH_JSON_BYTES_MAX, &length, NULL);
        if (text == NULL)
            continue;
        sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
        if (g_strcmp0(sha256, input->sha256) != 0 || !g_utf8_validate(text, (gssize)length, NULL))
            continue;
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "path", input->path);
        lh_jsonw_string(w, "text", text);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

void
lh_validate_json(const LhSetup *setup, const LhValidated *validated, const LhValidateParams *params,
                 double tolerance, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    GArray *of_case = lh_params_members(&setup->params);

    lh_document_begin(w, VALIDATION_SCHEMA, stamp, setup, true);
    lh_jsonw_string(w, "provenance", "measured");
    lh_jsonw_double(w, "tolerance", tolerance);
    lh_jsonw_string(w, "backend", params->backend->name);
    lh_jsonw_string(w, "kernels", params->backend->device->kernel_sets[params->kernel_set]);
    lh_jsonw_string(w, "profile", setup->scenario->profile);
    lh_jsonw_string(w, "statistic", lh_statistic_names[params->statistic]);
    lh_jsonw_uint(w, "repeat", params->repeat);
    lh_jsonw_bool(w, "interrupted", validated->interrupted);
    lh_json_encode_member(w, &(LhField){ .name = "case", .type = LH_FIELD_MEMBERS }, &of_case,
                          NULL);
    lh_field_members_free(of_case);
    write_prediction(w, validated);
    write_summary(w, validated);
    write_schedules(w, validated, tolerance);
    write_hosts(w, validated->hosts);
    write_explained(w, validated->explained);
    write_files(w, setup);
    lh_jsonw_object_end(w);
}

/* --- read ---------------------------------------------------------------------------------------
 */

/* A number of this struct that is written as @key. */
#define NUMBER(Struct, key, member)                                                                \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_DOUBLE, .offset = offsetof(Struct, member),                \
        .min = -NUMBER_MAX, .max = NUMBER_MAX                                                      \
    }
/* Which is not negative. */
#define SECONDS(Struct, key, member, more)                                                         \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_DOUBLE, .offset = offsetof(Struct, member), .min = 0,      \
        .max = NUMBER_MAX, .flags = (more)                                                         \
    }
#define TEXT(Struct, key, member, more)                                                            \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_STRING, .offset = offsetof(Struct, member),                \
        .flags = (more)                                                                            \
    }
#define COUNT(Struct, key, member)                                                                 \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_UINT, .offset = offsetof(Struct, member),                  \
        .flags = LH_FIELD_REQUIRED                                                                 \
    }
#define LIST(Struct, key, member, of, Element, more)                                               \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_ARRAY, .offset = offsetof(Struct, member), .fields = (of), \
        .element_size = sizeof(Element), .flags = (more)                                           \
    }
/* What is made of these numbers, such as a ratio, is a number, too. */
#define NUMBER_MAX 1e12
#define SECONDS_MIN 1e-12 /* of what took time */

typedef struct {
    char *name; /* of a kernel or a tier */
    uint64_t ops;
    double measured_s, predicted_s, share, error_median, error_worst;
} Errors;

/* @key: what is named. */
#define ERRORS(key)                                                                                \
    {                                                                                              \
        TEXT(Errors, key, name, LH_FIELD_REQUIRED), COUNT(Errors, "ops", ops),                     \
            SECONDS(Errors, "measured_s", measured_s, LH_FIELD_REQUIRED),                          \
            SECONDS(Errors, "predicted_s", predicted_s, LH_FIELD_REQUIRED),                        \
            NUMBER(Errors, "share", share), NUMBER(Errors, "error_median", error_median),          \
            NUMBER(Errors, "error_worst", error_worst), { .name = NULL },                          \
    }

static const LhField kernel_fields[] = ERRORS("kernel");
static const LhField tier_fields[] = ERRORS("tier");

typedef struct {
    char *schedule, *refused;
    double predicted_s, measured_s, op_error, spread, start_s;
    uint64_t rank, runs;
    GArray *kernels, *tiers; /* of Errors */
} ValidatedRow;

static const LhField validated_row_fields[] = {
    TEXT(ValidatedRow, "schedule", schedule, LH_FIELD_REQUIRED),
    TEXT(ValidatedRow, "refused", refused, LH_FIELD_OR_NULL),
    { .name = "rank",
      .type = LH_FIELD_UINT,
      .offset = offsetof(ValidatedRow, rank),
      .max = LH_RANKS_MAX - 1 },
    SECONDS(ValidatedRow, "predicted_s", predicted_s, 0),
    { .name = "runs", .type = LH_FIELD_UINT, .offset = offsetof(ValidatedRow, runs) },
    SECONDS(ValidatedRow, "measured_s", measured_s, 0),
    NUMBER(ValidatedRow, "op_error", op_error),
    NUMBER(ValidatedRow, "spread", spread),
    SECONDS(ValidatedRow, "start_s", start_s, 0),
    LIST(ValidatedRow, "kernels", kernels, kernel_fields, Errors, 0),
    LIST(ValidatedRow, "tiers", tiers, tier_fields, Errors, 0),
    { .name = NULL },
};

typedef struct {
    char *host, *peer_host;
    uint64_t node, peer;
    double measured_s, predicted_s;
} Host;

static const LhField host_fields[] = {
    TEXT(Host, "host", host, LH_FIELD_REQUIRED),
    COUNT(Host, "node", node),
    TEXT(Host, "peer_host", peer_host, 0),
    { .name = "peer", .type = LH_FIELD_UINT, .offset = offsetof(Host, peer) },
    SECONDS(Host, "measured_s", measured_s, LH_FIELD_REQUIRED),
    SECONDS(Host, "predicted_s", predicted_s, LH_FIELD_REQUIRED),
    { .name = NULL },
};

typedef struct {
    char *name;
    double scale, error;
} Constant;

static const LhField constant_fields[] = {
    TEXT(Constant, "class", name, LH_FIELD_REQUIRED),
    NUMBER(Constant, "scale", scale),
    NUMBER(Constant, "error", error),
    { .name = NULL },
};

typedef struct {
    double error;
    char *best, *alike;
    GArray *constants; /* of Constant; NULL: nothing is explained */
} Explanation;

static const LhField explanation_fields[] = {
    NUMBER(Explanation, "error", error),
    TEXT(Explanation, "best", best, LH_FIELD_OR_NULL),
    TEXT(Explanation, "alike", alike, LH_FIELD_OR_NULL),
    LIST(Explanation, "constants", constants, constant_fields, Constant, LH_FIELD_REQUIRED),
    { .name = NULL },
};

typedef struct {
    char *sha256;
    GPtrArray *lines;
} Prediction;

static const LhField prediction_fields[] = {
    TEXT(Prediction, "sha256", sha256, LH_FIELD_REQUIRED),
    { .name = "lines",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(Prediction, lines),
      .flags = LH_FIELD_REQUIRED },
    { .name = NULL },
};

typedef struct {
    uint64_t cores, runs, runs_left_out;
    double error_median, error_worst, rank_correlation;
} Summary;

static const LhField summary_fields[] = {
    { .name = "cores",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Summary, cores),
      .max = UINT32_MAX },
    COUNT(Summary, "runs", runs),
    COUNT(Summary, "runs_left_out", runs_left_out),
    { .name = "error_median",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Summary, error_median),
      .flags = LH_FIELD_OR_NULL },
    { .name = "error_worst",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Summary, error_worst),
      .flags = LH_FIELD_OR_NULL },
    { .name = "rank_correlation",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Summary, rank_correlation),
      .flags = LH_FIELD_OR_NULL },
    { .name = NULL },
};

typedef struct {
    Prediction prediction;
    Summary summary;
    GArray *rows, *hosts; /* of ValidatedRow, Host */
    Explanation explanation;
} Document;

static const LhField document_fields[] = {
    { .name = "prediction",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Document, prediction),
      .fields = prediction_fields,
      .flags = LH_FIELD_REQUIRED },
    { .name = "summary",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Document, summary),
      .fields = summary_fields,
      .flags = LH_FIELD_REQUIRED },
    LIST(Document, "schedules", rows, validated_row_fields, ValidatedRow, LH_FIELD_REQUIRED),
    LIST(Document, "hosts", hosts, host_fields, Host, LH_FIELD_REQUIRED),
    { .name = "explanation",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Document, explanation),
      .fields = explanation_fields },
    { .name = NULL },
};

static GArray *
take_errors(const GArray *read)
{
    GArray *errors = g_array_new(FALSE, FALSE, sizeof(LhKernelErrors));

    for (guint i = 0; read != NULL && i < read->len; i++) {
        const Errors *e = &g_array_index(read, Errors, i);
        const LhKernelErrors row = { .kernel = g_intern_string(e->name),
                                     .ops = e->ops,
                                     .measured_s = e->measured_s,
                                     .predicted_s = e->predicted_s,
                                     .share = e->share,
                                     .error_median = e->error_median,
                                     .error_worst = e->error_worst };

        g_array_append_val(errors, row);
    }
    return errors;
}

/* @ranks: that were run; 0: it was not even predicted. @alone: it is the row's that ran. */
static LhValidation *
take_row(const ValidatedRow *row, uint32_t ranks, bool alone)
{
    LhValidation *v = g_new0(LhValidation, 1);

    *v = (LhValidation){ .schedule = g_intern_string(row->schedule),
                         .refused = g_strdup(row->refused),
                         .measured_s = row->measured_s,
                         .predicted_s = row->predicted_s,
                         .spread = row->spread,
                         .start_s = row->start_s,
                         .op_error = row->op_error,
                         .runs = row->runs,
                         .ranks = ranks,
                         .rank = alone ? (int64_t)row->rank : -1,
                         .kernels = take_errors(row->kernels),
                         .tiers = take_errors(row->tiers) };
    return v;
}

/* Kernels of every host come first, then messages of pairs. */
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
            lh_json_error(json, path, error,
                          "hosts are numbered from 0 on, their kernels stand first, and pairs of "
                          "them behind");
            return NULL;
        }
        if (kernels)
            hosts->names[i] = g_strdup(h->host);
        g_array_append_val(hosts->times, times);
    }
    lh_slow_hosts_judge(hosts);
    return g_steal_pointer(&hosts);
}

/* -1: there is no such class. */
static int
class_of(const char *name)
{
    for (int i = 0; name != NULL && i < LH_ATTRIBUTION_CLASSES; i++) {
        if (g_str_equal(lh_attribution_names[i], name))
            return i;
    }
    return -1;
}

static LhAttributed *
take_explained(const Explanation *read)
{
    LhAttributed *e = g_new0(LhAttributed, 1);

    e->error = read->error;
    e->best = class_of(read->best);
    e->second = class_of(read->alike);
    e->alike = e->second >= 0;
    for (guint i = 0; i < read->constants->len; i++) {
        const Constant *c = &g_array_index(read->constants, Constant, i);
        const int class = class_of(c->name);

        if (class >= 0)
            e->classes[class] = (LhAttribution){ true, c->scale, c->error };
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

/* Rows that were predicted have a rank if ranks ran @alone, and no others have. */
static bool
take_rows(LhValidated *validated, const LhJson *json, const GArray *rows, uint32_t ranks,
          bool alone, GError **error)
{
    for (guint i = 0; i < rows->len; i++) {
        const ValidatedRow *row = &g_array_index(rows, ValidatedRow, i);
        g_autofree char *rank = g_strdup_printf("schedules[%u].rank", i);
        g_autofree char *time = g_strdup_printf("schedules[%u].predicted_s", i);
        g_autofree char *measured = g_strdup_printf("schedules[%u].measured_s", i);
        g_autofree char *start = g_strdup_printf("schedules[%u].start_s", i);
        const bool predicted = lh_json_has(json, time);

        if (lh_json_has(json, rank) != (alone && predicted) || row->rank >= ranks)
            return lh_json_error(json, rank, error,
                                 alone ? "a schedule that was predicted has a rank, less than %u; "
                                         "no other one has"
                                       : "of %u ranks, all ran: none of them alone",
                                 ranks);
        if (row->runs > 0 && row->measured_s < SECONDS_MIN)
            return lh_json_error(json, measured, error,
                                 "a schedule that ran took at least %g seconds", SECONDS_MIN);
        if (row->runs > 0 && fabs(row->measured_s - row->start_s) < SECONDS_MIN)
            return lh_json_error(json, start, error,
                                 "a schedule that ran took longer than until it started");
        g_ptr_array_add(validated->rows, take_row(row,
                                                  !predicted ? 0
                                                  : alone    ? 1
                                                             : ranks,
                                                  alone && predicted));
    }
    return true;
}

/* NULL with @error, also if part of it cannot be. */
static LhValidated *
take(const LhJson *json, const LhSetup *setup, bool alone, const Document *d, GError **error)
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
    Document d = {
        .summary = { .error_median = NAN, .error_worst = NAN, .rank_correlation = NAN },
    };
    LhValidated *validated = NULL;

    if (!lh_json_decode(json, document_fields, &d, true, error))
        return NULL;
    if (d.summary.runs > 0)
        validated = take(json, setup, alone, &d, error);
    else
        lh_json_error(json, "summary.runs", error,
                      "nothing has been measured yet: this is the "
                      "prediction alone");
    lh_json_clear(document_fields, &d);
    return validated;
}
