/* SPDX-License-Identifier: Apache-2.0 */
/* A process sends lines: first its state, then one per outcome. */
#include "planner/distributed_search.h"

#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_encode.h"
#include "planner/search_record.h"

#include <stddef.h>
#include <string.h>

static const LhField state_fields[] = {
    { .name = "interrupted",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhDistributedSearch, interrupted),
      .flags = LH_FIELD_REQUIRED },
    { .name = "limit_bytes",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhDistributedSearch, limit_bytes),
      .flags = LH_FIELD_REQUIRED },
    { .name = NULL },
};

GArray *
lh_distributed_search(const LhProcesses *processes, guint turns)
{
    const guint first = processes != NULL ? processes->control.place.first : 0;
    const guint step = processes != NULL ? processes->count : 1;
    GArray *mine = g_array_new(FALSE, FALSE, sizeof(guint));

    for (guint turn = first; turn < turns; turn += step)
        g_array_append_val(mine, turn);
    return mine;
}

/* ---- sending ---- */

static char *
tell_outcomes(const LhPlanOutcome *outcomes, const GArray *told, const LhDistributedSearch *deal)
{
    g_autofree char *state = lh_json_encode_line(state_fields, deal);
    GString *text = g_string_new(NULL);

    g_string_append_printf(text, "%s\n", state);
    for (guint i = 0; i < told->len; i++) {
        const guint turn = g_array_index(told, guint, i);

        g_autofree char *line = lh_search_record_text(NULL, turn, NULL, &outcomes[turn]);

        g_string_append_printf(text, "%s\n", line);
    }
    return g_string_free(text, FALSE);
}

/* ---- receiving ---- */

static bool
hear_state(const char *name, const char *line, LhDistributedSearch *deal, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(name, line, strlen(line), error);
    LhDistributedSearch other = { .interrupted = false };

    if (json == NULL || !lh_json_decode(json, state_fields, &other, false, error))
        return false;
    deal->interrupted = deal->interrupted || other.interrupted;
    deal->limit_bytes = MAX(deal->limit_bytes, other.limit_bytes);
    return true;
}

static bool
hear_outcome(const char *name, const char *line, LhPlanOutcome *outcomes, guint turns,
             GError **error)
{
    g_autofree char *cluster = NULL;
    LhPlanOutcome outcome;
    guint turn;

    if (!lh_search_record_read(name, line, &cluster, &turn, &outcome, error))
        return false;
    if (turn >= turns) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "turn %u of %u", turn, turns);
        g_free(outcome.reason);
        return false;
    }
    g_free(outcomes[turn].reason);
    outcomes[turn] = outcome;
    return true;
}

static bool
hear(const char *name, char *text, LhPlanOutcome *outcomes, guint turns, LhDistributedSearch *deal,
     GError **error)
{
    char *line = text;

    for (guint number = 0; *line != '\0'; number++) {
        char *end = strchr(line, '\n');

        if (end != NULL)
            *end = '\0';
        if (!(number == 0 ? hear_state(name, line, deal, error)
                          : hear_outcome(name, line, outcomes, turns, error)))
            return false;
        line = end != NULL ? end + 1 : line + strlen(line);
    }
    return true;
}

bool
lh_distributed_search_share(const LhProcesses *processes, LhPlanOutcome *outcomes, guint turns,
                            const GArray *told, LhDistributedSearch *deal, GError **error)
{
    g_autofree char *mine = tell_outcomes(outcomes, told, deal);
    g_auto(GStrv) texts = lh_processes_texts(processes, mine, error);

    for (uint32_t r = 0; texts != NULL && r < processes->count; r++) {
        g_autofree char *name = g_strdup_printf("process %u", r);
        g_autoptr(GError) cause = NULL;

        if (r == processes->control.place.first ||
            hear(name, texts[r], outcomes, turns, deal, &cause))
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "the outcomes of %s cannot be read: start all processes with the same options, "
                    "files and version (%s)",
                    name, cause->message);
        return false;
    }
    return texts != NULL;
}
