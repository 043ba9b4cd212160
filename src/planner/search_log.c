/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/search_log.h"

#include "base/error.h"
#include "base/files/append_log.h"
#include "base/json/json_encode.h"
#include "planner/plan.h"
#include "planner/search_record.h"

#include "config.h"

#include <string.h>

struct _LhSearchLog {
    LhAppendLog *journal;
    GHashTable *known; /* "cluster#point#state before" -> LhPlanOutcome *, owned */
    LhPlanMemory memory;
};

/* A point has at most two lines: its close estimate, and its simulation. */
static char *
key_of(const char *cluster, guint point, bool estimated)
{
    return g_strdup_printf("%s#%u#%d", cluster, point, estimated);
}

/* Name of the search in a space, of which there are two if nothing fits in the first. Caller
 * frees. */
static char *
name_of(const LhPlanSpace *space)
{
    return g_strdup_printf("%s%s", space->cluster, space->types ? " types" : "");
}

static void
outcome_free(gpointer data)
{
    LhPlanOutcome *outcome = data;

    g_free(outcome->reason);
    g_free(outcome);
}

/* ---- reading ---- */

static bool
is_simulation(const LhPlanOutcome *outcome)
{
    return outcome->state == LH_POINT_RAN || outcome->state == LH_POINT_FAILED ||
           (outcome->state == LH_POINT_CUT && outcome->close);
}

/* Whether a search could have recorded this outcome. */
static bool
is_possible(const LhPlanOutcome *outcome)
{
    return outcome->state != LH_POINT_REFUSED &&
           (outcome->state != LH_POINT_OPEN || outcome->close);
}

static bool
read_outcome(LhSearchLog *points, const char *path, const char *text, guint number, GError **error)
{
    g_autofree LhPlanOutcome *outcome = g_new0(LhPlanOutcome, 1);
    g_autofree char *cluster = NULL;
    guint point = 0;
    const bool read = lh_search_record_read(path, text, &cluster, &point, outcome, NULL);

    if (read && cluster != NULL && is_possible(outcome)) {
        char *key = key_of(cluster, point, is_simulation(outcome));

        g_hash_table_replace(points->known, key, g_steal_pointer(&outcome));
        return true;
    }
    g_free(outcome->reason);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: line %u was not written by a plan, so the file cannot be resumed; remove it, "
                "or give another name",
                path, number);
    return false;
}

static bool
recall(void *data, const LhPlanSpace *space, guint index, LhPlanOutcome *outcome)
{
    const LhSearchLog *points = data;
    g_autofree char *name = name_of(space);
    g_autofree char *key = key_of(name, index, outcome->close);
    const LhPlanOutcome *known = g_hash_table_lookup(points->known, key);

    if (known == NULL)
        return false;
    *outcome = *known;
    outcome->reason = g_strdup(known->reason);
    return true;
}

/* ---- writing ---- */

static void
remember(void *data, const LhPlanSpace *space, guint index, const LhPlanOutcome *outcome)
{
    LhSearchLog *points = data;
    g_autofree char *name = name_of(space);
    g_autofree char *key = key_of(name, index, is_simulation(outcome));
    g_autofree char *way = NULL;
    g_autofree char *line = NULL;

    if (g_hash_table_contains(points->known, key))
        return;
    way = lh_plan_point_text(space, index);
    line = lh_search_record_text(name, index, way, outcome);
    lh_append_log_append(points->journal, line);
}

/* ---- the file ---- */

typedef struct {
    const char *schema, *version, *query_sha256;
} FirstLine;

static const LhField first_fields[] = {
    LH_FIELD_ROW(STRING, FirstLine, schema, "schema", ALWAYS, .description = NULL),
    LH_FIELD_ROW(STRING, FirstLine, version, "version", ALWAYS, .description = NULL),
    LH_FIELD_ROW(STRING, FirstLine, query_sha256, "query_sha256", ALWAYS, .description = NULL),
    { .name = NULL },
};

static char *
first_line(const char *query_sha256)
{
    const FirstLine line = { LH_POINTS_SCHEMA, LH_VERSION, query_sha256 };

    return lh_json_encode_line(first_fields, &line);
}

LhSearchLog *
lh_search_log_open(const char *path, const char *query_sha256, GError **error)
{
    g_autoptr(LhSearchLog) points = g_new0(LhSearchLog, 1);
    g_autofree char *first = first_line(query_sha256);
    g_autoptr(GPtrArray) lines = NULL;

    points->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, outcome_free);
    points->memory = (LhPlanMemory){ recall, remember, points };
    points->journal = lh_append_log_open(path, first, &lines, error);
    if (points->journal == NULL)
        return NULL;
    for (guint i = 0; i < lines->len; i++) {
        if (!read_outcome(points, path, g_ptr_array_index(lines, i), i + 2, error))
            return NULL;
    }
    return g_steal_pointer(&points);
}

const LhPlanMemory *
lh_search_log_memory(LhSearchLog *points)
{
    return points != NULL ? &points->memory : NULL;
}

bool
lh_search_log_close(LhSearchLog *points, GError **error)
{
    const bool ok = points == NULL || lh_append_log_close(g_steal_pointer(&points->journal), error);

    lh_search_log_free(points);
    return ok;
}

void
lh_search_log_free(LhSearchLog *points)
{
    if (points == NULL)
        return;
    lh_append_log_free(points->journal);
    g_hash_table_unref(points->known);
    g_free(points);
}
