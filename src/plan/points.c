/* See the header. */
#include "plan/points.h"

#include "base/error.h"
#include "base/journal.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "plan/plan.h"

#include "config.h"

#include <math.h>
#include <string.h>

/* A line. */
typedef struct {
    char *cluster;
    uint64_t point;
    char *way; /* for people */
    int state; /* LhPointState; open: its estimates are known */
    bool close;
    uint64_t time_ps, peak_bytes;
    double time_error;
    GArray *error_parts; /* of double */
    char *reason;
} Line;

#define AT(member) offsetof(Line, member)

static const LhField line_fields[] = {
    { .name = "cluster",
      .type = LH_FIELD_STRING,
      .offset = AT(cluster),
      .flags = LH_FIELD_REQUIRED },
    { .name = "point",
      .type = LH_FIELD_UINT,
      .offset = AT(point),
      .flags = LH_FIELD_REQUIRED,
      .max = G_MAXUINT32 },
    { .name = "way", .type = LH_FIELD_STRING, .offset = AT(way), .flags = LH_FIELD_REQUIRED },
    { .name = "state",
      .type = LH_FIELD_CHOICE,
      .offset = AT(state),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_point_state_names },
    { .name = "close", .type = LH_FIELD_BOOL, .offset = AT(close), .flags = LH_FIELD_REQUIRED },
    { .name = "time_ps",
      .type = LH_FIELD_UINT,
      .offset = AT(time_ps),
      .flags = LH_FIELD_REQUIRED,
      .max = (double)LH_TIME_LONGEST },
    { .name = "peak_bytes",
      .type = LH_FIELD_UINT,
      .offset = AT(peak_bytes),
      .flags = LH_FIELD_REQUIRED },
    { .name = "time_error", .type = LH_FIELD_DOUBLE, .offset = AT(time_error) },
    { .name = "error_parts",
      .type = LH_FIELD_DOUBLES,
      .offset = AT(error_parts),
      .min = LH_ERROR_PARTS,
      .max = LH_ERROR_PARTS },
    { .name = "reason", .type = LH_FIELD_STRING, .offset = AT(reason) },
    { .name = NULL },
};

struct _LhPlanPoints {
    LhJournal *journal;
    GHashTable *known; /* "cluster#point#state before" -> LhPlanOutcome *, owned */
    LhPlanMemory memory;
};

/* A point has two lines at most: of its close estimate, and of its simulation. */
static char *
key_of(const char *cluster, guint point, bool estimated)
{
    return g_strdup_printf("%s#%u#%d", cluster, point, estimated);
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

/* Whether a search could have found this: something that it did not know before. */
static bool
is_possible(const Line *line)
{
    return line->state != LH_POINT_REFUSED && (line->state != LH_POINT_OPEN || line->close) &&
           (line->state != LH_POINT_RAN || line->error_parts != NULL);
}

static void
take_line(LhPlanPoints *points, const Line *line)
{
    LhPlanOutcome *outcome = g_new0(LhPlanOutcome, 1);

    *outcome = (LhPlanOutcome){ .state = line->state,
                                .close = line->close,
                                .time_ps = (LhTime)line->time_ps,
                                .peak_bytes = line->peak_bytes,
                                .time_error = line->time_error,
                                .reason = g_strdup(line->reason) };
    for (guint i = 0; line->error_parts != NULL && i < LH_ERROR_PARTS; i++)
        outcome->parts.part[i] = g_array_index(line->error_parts, double, i);
    g_hash_table_replace(
        points->known, key_of(line->cluster, (guint)line->point, is_simulation(outcome)), outcome);
}

static bool
read_line(LhPlanPoints *points, const char *path, const char *text, guint number, GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autoptr(LhJson) json = lh_json_parse(path, text, strlen(text), &cause);
    Line line = { 0 };

    const bool read = json != NULL && lh_json_decode(json, line_fields, &line, false, &cause);
    const bool possible = read && is_possible(&line);

    if (possible)
        take_line(points, &line);
    if (read)
        lh_json_clear(line_fields, &line);
    if (!possible)
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: line %u is none that a plan writes, so the file cannot be gone on from; "
                    "remove it, or give another name",
                    path, number);
    return possible;
}

static bool
recall(void *data, const LhPlanSpace *space, guint index, LhPlanOutcome *outcome)
{
    const LhPlanPoints *points = data;
    g_autofree char *key = key_of(space->cluster, index, outcome->close);
    const LhPlanOutcome *known = g_hash_table_lookup(points->known, key);

    if (known == NULL)
        return false;
    *outcome = *known;
    outcome->reason = g_strdup(known->reason);
    return true;
}

/* ---- writing ---- */

static void
write_line(LhJsonWriter *w, const LhPlanSpace *space, guint index, const LhPlanOutcome *outcome)
{
    g_autofree char *way = lh_plan_point_text(space, index);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "cluster", space->cluster);
    lh_jsonw_uint(w, "point", index);
    lh_jsonw_string(w, "way", way);
    lh_jsonw_string(w, "state", lh_point_state_names[outcome->state]);
    lh_jsonw_bool(w, "close", outcome->close);
    lh_jsonw_uint(w, "time_ps", (uint64_t)outcome->time_ps);
    lh_jsonw_uint(w, "peak_bytes", outcome->peak_bytes);
    if (outcome->state == LH_POINT_RAN) {
        lh_jsonw_double(w, "time_error", outcome->time_error);
        lh_jsonw_array_begin(w, "error_parts");
        for (guint i = 0; i < LH_ERROR_PARTS; i++)
            lh_jsonw_double(w, NULL, outcome->parts.part[i]);
        lh_jsonw_array_end(w);
    }
    if (outcome->reason != NULL)
        lh_jsonw_string(w, "reason", outcome->reason);
    lh_jsonw_object_end(w);
}

static void
remember(void *data, const LhPlanSpace *space, guint index, const LhPlanOutcome *outcome)
{
    LhPlanPoints *points = data;
    g_autofree char *key = key_of(space->cluster, index, is_simulation(outcome));
    g_autoptr(GString) line = g_string_new(NULL);
    LhJsonWriter *w;

    if (g_hash_table_contains(points->known, key))
        return;
    w = lh_jsonw_new(line, true);
    write_line(w, space, index, outcome);
    lh_jsonw_free(w);
    g_strchomp(line->str);
    lh_journal_append(points->journal, line->str);
}

/* ---- the file ---- */

static char *
first_line(const char *query_sha256)
{
    g_autoptr(GString) line = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(line, true);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schema", LH_POINTS_SCHEMA);
    lh_jsonw_string(w, "version", LH_VERSION);
    lh_jsonw_string(w, "query_sha256", query_sha256);
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    return g_strdup(g_strchomp(line->str));
}

LhPlanPoints *
lh_plan_points_open(const char *path, const char *query_sha256, GError **error)
{
    g_autoptr(LhPlanPoints) points = g_new0(LhPlanPoints, 1);
    g_autofree char *first = first_line(query_sha256);
    g_autoptr(GPtrArray) lines = NULL;

    points->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, outcome_free);
    points->memory = (LhPlanMemory){ recall, remember, points };
    points->journal = lh_journal_open(path, first, &lines, error);
    if (points->journal == NULL)
        return NULL;
    for (guint i = 0; i < lines->len; i++) {
        if (!read_line(points, path, g_ptr_array_index(lines, i), i + 2, error))
            return NULL;
    }
    return g_steal_pointer(&points);
}

const LhPlanMemory *
lh_plan_points_memory(LhPlanPoints *points)
{
    return points != NULL ? &points->memory : NULL;
}

bool
lh_plan_points_close(LhPlanPoints *points, GError **error)
{
    const bool ok = points == NULL || lh_journal_close(g_steal_pointer(&points->journal), error);

    lh_plan_points_free(points);
    return ok;
}

void
lh_plan_points_free(LhPlanPoints *points)
{
    if (points == NULL)
        return;
    lh_journal_free(points->journal);
    g_hash_table_unref(points->known);
    g_free(points);
}
