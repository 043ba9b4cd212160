/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/outcome_run.h"

#include "program/program.h"
#include "report/diff/outcome_fields.h"
#include "report/diff/question.h"

#include <math.h>
#include <string.h>

/* --- results ------------------------------------------------------------------------------------
 */

/* Fields of the case used for computation; the whole case is compared as in document.c. */
typedef struct {
    uint64_t ranks;
} CaseOf;

static const LhField case_fields[] = {
    { .name = "ranks",
      .type = LH_FIELD_UINT,
      .offset = offsetof(CaseOf, ranks),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = UINT32_MAX },
    { .name = NULL },
};

enum { PARTS = 7, SENT = 5 };

static const char *const part_names[PARTS] = { "compute",      "imbalance",   "exposed nvlink",
                                               "exposed pcie", "exposed nic", "exposed fabric",
                                               "host" };
static const char *const sent_names[SENT] = { "sent", "sent over nvlink", "sent over pcie",
                                              "sent over nic", "sent over fabric" };

typedef struct {
    double by_category[LH_CATEGORIES];
} Peak;

typedef struct {
    char *schedule, *state;
    double makespan_s, parts_s[PARTS], sent[SENT], peak_bytes;
    Peak peak;
    bool has_peak;
} ResultRow;

static void
row_init(void *data)
{
    ResultRow *row = data;

    *row = (ResultRow){ .makespan_s = NAN, .peak_bytes = NAN };
    for (int i = 0; i < PARTS; i++)
        row->parts_s[i] = NAN;
    for (int i = 0; i < SENT; i++)
        row->sent[i] = NAN;
}

static const LhField result_row_fields[] = {
    LH_OUTCOME_STRING(ResultRow, schedule, "schedule"),
    LH_OUTCOME_STRING(ResultRow, state, "state"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, makespan_s, "makespan_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, parts_s[0], "compute_sum_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, parts_s[1], "imbalance_sum_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, parts_s[2], "exposed_nvlink_sum_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, parts_s[3], "exposed_pcie_sum_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, parts_s[4], "exposed_nic_sum_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, parts_s[5], "exposed_fabric_sum_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, parts_s[6], "host_sum_s"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, sent[0], "sent_bytes_sum"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, sent[1], "sent_nvlink_bytes_sum"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, sent[2], "sent_pcie_bytes_sum"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, sent[3], "sent_nic_bytes_sum"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, sent[4], "sent_fabric_bytes_sum"),
    LH_OUTCOME_NUMBER_OR_NULL(ResultRow, peak_bytes, "peak_bytes_max"),
    { .name = NULL },
};

typedef struct {
    CaseOf of_case;
    char *winner;
    bool interrupted;
    GArray *rows; /* of ResultRow */
} Result;

static const LhField result_fields[] = {
    { .name = "case",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Result, of_case),
      .flags = LH_FIELD_REQUIRED,
      .fields = case_fields },
    { .name = "winner",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Result, winner),
      .flags = LH_FIELD_OR_NULL },
    { .name = "interrupted", .type = LH_FIELD_BOOL, .offset = offsetof(Result, interrupted) },
    { .name = "results",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Result, rows),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = -1,
      .fields = result_row_fields,
      .element_size = sizeof(ResultRow),
      .element_init = row_init },
    { .name = NULL },
};

/* Documents written before "asked" are of a training step if they have members that only steps
 * have. */
static bool
read_case(LhOutcome *o, const LhJson *json, GError **error)
{
    o->question = lh_question_read(json, "case", NULL, error);
    if (o->question != NULL && !o->question->told &&
        lh_json_has(json, "case.tensor_model_parallel_size"))
        lh_question_give(o->question, "step", "true");
    return o->question != NULL;
}

/* Adds the row's peak memory by category; a document has only the categories that occur. */
static bool
add_categories(const LhJson *json, guint index, LhEntry *entry, GError **error)
{
    LhField fields[LH_CATEGORIES + 1] = { { .name = NULL } };
    g_autofree char *path = g_strdup_printf("results[%u].peak.by_category", index);
    GError *cause = NULL;
    Peak peak;

    for (int c = 0; c < LH_CATEGORIES; c++) {
        peak.by_category[c] = NAN;
        fields[c] = (LhField){ .name = lh_category_names[c],
                               .type = LH_FIELD_DOUBLE,
                               .offset = offsetof(Peak, by_category) + (gsize)c * sizeof(double),
                               .max = -1 };
    }
    if (!lh_json_decode_at(json, path, fields, &peak, true, &cause)) {
        if (cause == NULL)
            return true;
        g_propagate_error(error, cause);
        return false;
    }
    for (int c = 0; c < LH_CATEGORIES; c++)
        lh_entry_add_quantity(entry, LH_QUANTITY_MEMORY, lh_category_names[c], true,
                              peak.by_category[c]);
    return true;
}

static bool
add_result_row(LhOutcome *o, const LhJson *json, const Result *r, guint index, GError **error)
{
    const ResultRow *row = &g_array_index(r->rows, ResultRow, index);
    const bool ran = strcmp(row->state, "ok") == 0 || strcmp(row->state, "unproven") == 0 ||
                     strcmp(row->state, "out-of-memory") == 0;
    g_autofree char *path =
        g_strdup_printf("results[%u].%s", index, ran ? "makespan_s" : "schedule");
    LhEntry *entry;

    if (lh_outcome_entry(o, row->schedule) != NULL)
        return lh_json_error(json, path, error, "duplicate schedule \"%s\"", row->schedule);
    if (ran && isnan(row->makespan_s))
        return lh_json_error(json, path, error, "\"%s\" ran, but its time is missing",
                             row->schedule);
    entry = lh_outcome_add_entry(o, row->schedule, row->state);
    lh_entry_add_quantity(entry, LH_QUANTITY_WHOLE, "time", false, row->makespan_s);
    lh_entry_add_quantity(entry, LH_QUANTITY_WHOLE, "memory", true, row->peak_bytes);
    for (int i = 0; i < PARTS; i++)
        lh_entry_add_quantity(entry, LH_QUANTITY_PART, part_names[i], false,
                              row->parts_s[i] / (double)r->of_case.ranks);
    for (int i = 0; i < SENT; i++)
        lh_entry_add_quantity(entry, LH_QUANTITY_TRAFFIC, sent_names[i], true, row->sent[i]);
    return add_categories(json, index, entry, error);
}

bool
lh_outcome_read_result(LhOutcome *o, const LhJson *json, GError **error)
{
    Result r = { .rows = NULL };
    bool ok = true;

    if (!read_case(o, json, error) || !lh_json_decode(json, result_fields, &r, true, error))
        return false;
    o->winner = g_strdup(r.winner);
    o->partial = r.interrupted;
    for (guint i = 0; i < r.rows->len && ok; i++)
        ok = add_result_row(o, json, &r, i, error);
    lh_json_clear(result_fields, &r);
    return ok;
}

/* --- critical paths -----------------------------------------------------------------------------
 */

typedef struct {
    char *of, *name, *phase; /* calls have name and phase, others `of` */
    double path_s;
} Share;

static const LhField share_fields[] = {
    LH_OUTCOME_STRING(Share, of, "of"),
    LH_OUTCOME_NUMBER_OR_NULL(Share, path_s, "path_s"),
    { .name = NULL },
};

static const LhField call_fields[] = {
    LH_OUTCOME_STRING(Share, name, "name"),
    LH_OUTCOME_STRING(Share, phase, "phase"),
    LH_OUTCOME_NUMBER_OR_NULL(Share, path_s, "path_s"),
    { .name = NULL },
};

typedef struct {
    CaseOf of_case;
    char *schedule;
    double makespan_s;
    GArray *resources, *phases, *calls; /* of Share */
} Path;

#define SHARES(member, key, table)                                                                 \
    {                                                                                              \
        .name = key, .type = LH_FIELD_ARRAY, .offset = offsetof(Path, member),                     \
        .flags = LH_FIELD_REQUIRED, .fields = (table), .element_size = sizeof(Share)               \
    }

static const LhField path_fields[] = {
    { .name = "case",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Path, of_case),
      .flags = LH_FIELD_REQUIRED,
      .fields = case_fields },
    LH_OUTCOME_STRING(Path, schedule, "schedule"),
    { .name = "makespan_s",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Path, makespan_s),
      .flags = LH_FIELD_REQUIRED,
      .max = -1 },
    SHARES(resources, "resources", share_fields),
    SHARES(phases, "phases", share_fields),
    SHARES(calls, "calls", call_fields),
    { .name = NULL },
};

static void
add_shares(LhEntry *entry, LhQuantityKind kind, const GArray *shares)
{
    for (guint i = 0; i < shares->len; i++) {
        const Share *share = &g_array_index(shares, Share, i);
        g_autofree char *name = share->of != NULL
                                    ? g_strdup(share->of)
                                    : g_strdup_printf("%s, %s", share->name, share->phase);

        lh_entry_add_quantity(entry, kind, name, false, share->path_s);
    }
}

bool
lh_outcome_read_path(LhOutcome *o, const LhJson *json, GError **error)
{
    Path p = { .schedule = NULL };
    LhEntry *entry;

    if (!read_case(o, json, error) || !lh_json_decode(json, path_fields, &p, true, error))
        return false;
    o->winner = g_strdup(p.schedule);
    entry = lh_outcome_add_entry(o, p.schedule, "ok");
    lh_entry_add_quantity(entry, LH_QUANTITY_WHOLE, "time", false, p.makespan_s);
    add_shares(entry, LH_QUANTITY_RESOURCE, p.resources);
    add_shares(entry, LH_QUANTITY_PHASE, p.phases);
    add_shares(entry, LH_QUANTITY_CALL, p.calls);
    lh_json_clear(path_fields, &p);
    return true;
}
