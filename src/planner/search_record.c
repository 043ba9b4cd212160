/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/search_record.h"

#include "base/json/json.h"
#include "base/json/json_encode.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

typedef struct {
    char *cluster;
    uint64_t point;
    char *way;
    int state; /* LhPointState; open: only its estimates are known */
    bool close;
    uint64_t time_ps, peak_bytes;
    LhTimeError time_error;
    GArray *error_parts; /* of double */
    char *remedies;      /* as options; NULL: none */
    char *reason;
} OutcomeLine;

#define LINE_AT(member) offsetof(OutcomeLine, member)

static const LhField outcome_fields[] = {
    { .name = "cluster", .type = LH_FIELD_STRING, .offset = LINE_AT(cluster) },
    { .name = "point",
      .type = LH_FIELD_UINT,
      .offset = LINE_AT(point),
      .flags = LH_FIELD_REQUIRED,
      .max = G_MAXUINT32 },
    { .name = "way", .type = LH_FIELD_STRING, .offset = LINE_AT(way) },
    { .name = "state",
      .type = LH_FIELD_CHOICE,
      .offset = LINE_AT(state),
      .flags = LH_FIELD_REQUIRED,
      .choices = lh_point_state_names },
    { .name = "close",
      .type = LH_FIELD_BOOL,
      .offset = LINE_AT(close),
      .flags = LH_FIELD_REQUIRED },
    { .name = "time_ps",
      .type = LH_FIELD_UINT,
      .offset = LINE_AT(time_ps),
      .flags = LH_FIELD_REQUIRED,
      .max = (double)LH_TIME_LONGEST },
    { .name = "peak_bytes",
      .type = LH_FIELD_UINT,
      .offset = LINE_AT(peak_bytes),
      .flags = LH_FIELD_REQUIRED },
    { .name = "time_error",
      .type = LH_FIELD_DOUBLE,
      .offset = LINE_AT(time_error.above),
      .flags = LH_FIELD_STATED },
    { .name = "time_error_below",
      .type = LH_FIELD_DOUBLE,
      .offset = LINE_AT(time_error.below),
      .flags = LH_FIELD_STATED },
    { .name = "error_parts",
      .type = LH_FIELD_DOUBLES,
      .offset = LINE_AT(error_parts),
      .min = LH_ERROR_PARTS,
      .max = LH_ERROR_PARTS },
    { .name = "remedies", .type = LH_FIELD_STRING, .offset = LINE_AT(remedies) },
    { .name = "reason", .type = LH_FIELD_STRING, .offset = LINE_AT(reason) },
    { .name = NULL },
};

static GArray *
parts_of(const LhPlanOutcome *outcome)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(double));

    return g_array_append_vals(parts, outcome->parts.part, LH_ERROR_PARTS);
}

char *
lh_search_record_text(const char *cluster, guint point, const char *way,
                      const LhPlanOutcome *outcome)
{
    const bool ran = outcome->state == LH_POINT_RAN;
    g_autoptr(GArray) parts = ran ? parts_of(outcome) : NULL;
    g_autofree char *remedies =
        lh_remedies_any(&outcome->remedies) ? lh_remedies_options(&outcome->remedies) : NULL;
    const OutcomeLine line = {
        .cluster = (char *)(guintptr)cluster,
        .point = point,
        .way = (char *)(guintptr)way,
        .state = outcome->state,
        .close = outcome->close,
        .time_ps = (uint64_t)outcome->time_ps,
        .peak_bytes = outcome->peak_bytes,
        .time_error = ran ? outcome->time_error : (LhTimeError){ NAN, NAN },
        .error_parts = parts,
        .remedies = remedies,
        .reason = outcome->reason,
    };

    return lh_json_encode_line(outcome_fields, &line);
}

/* A simulated point must have the parts of its error, a rejected one a reason. */
static bool
is_whole(const LhJson *json, const OutcomeLine *line, LhRemedies *remedies, GError **error)
{
    *remedies = (LhRemedies){ 0 };
    if (line->remedies != NULL && !lh_remedies_parse(line->remedies, remedies))
        return lh_json_error(json, "remedies", error, "found \"%s\"; allowed: options of memory",
                             line->remedies);
    if (line->state == LH_POINT_RAN && line->error_parts == NULL)
        return lh_json_error(json, "state", error,
                             "\"error_parts\" is missing for a simulated point");
    if (line->state == LH_POINT_REFUSED && line->reason == NULL)
        return lh_json_error(json, "state", error, "\"reason\" is missing for a rejected point");
    return true;
}

bool
lh_search_record_read(const char *name, const char *text, char **cluster, guint *point,
                      LhPlanOutcome *outcome, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(name, text, strlen(text), error);
    OutcomeLine line = { 0 };
    LhRemedies remedies;
    bool whole;

    if (json == NULL || !lh_json_decode(json, outcome_fields, &line, false, error))
        return false;
    whole = is_whole(json, &line, &remedies, error);
    if (whole) {
        *cluster = g_steal_pointer(&line.cluster);
        *point = (guint)line.point;
        *outcome = (LhPlanOutcome){ .state = line.state,
                                    .close = line.close,
                                    .time_ps = (LhTime)line.time_ps,
                                    .peak_bytes = line.peak_bytes,
                                    .time_error = line.time_error,
                                    .remedies = remedies,
                                    .reason = g_steal_pointer(&line.reason) };
        for (guint i = 0; line.error_parts != NULL && i < LH_ERROR_PARTS; i++)
            outcome->parts.part[i] = g_array_index(line.error_parts, double, i);
    }
    lh_json_clear(outcome_fields, &line);
    return whole;
}
