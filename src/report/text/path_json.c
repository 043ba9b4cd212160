/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/path_json.h"

#include "report/data/document.h"
#include "report/data/result_values.h"

#define NAMES_SIZE 1024 /* allocation size of names, bytes */

/* A time on the critical path. */
typedef struct {
    LhTime path_ps;
    double fraction; /* of the makespan */
} PathTime;

#define PATH_TIME_ROWS(of, member)                                                                 \
    LH_FIELD_SECONDS_ROW(UINT, of, member.path_ps, "path_s", ALWAYS,                               \
                         .description = "Time on the critical path."),                             \
        LH_FIELD_ROW(DOUBLE, of, member.fraction, "path_fraction", ALWAYS, .max = -1,              \
                     .description = "Time on the critical path as a fraction of the makespan.")

typedef struct {
    PathTime time;
    const char *of;
} PathPart;

static const LhField resource_fields[] = {
    PATH_TIME_ROWS(PathPart, time),
    LH_FIELD_ROW(STRING, PathPart, of, "of", ALWAYS,
                 .description = "compute, latency, host, or tiers of links such as nic or "
                                "pcie+nic."),
    { .name = NULL },
};

static const LhField phase_fields[] = {
    PATH_TIME_ROWS(PathPart, time),
    LH_FIELD_ROW(STRING, PathPart, of, "of", ALWAYS, .choices = lh_phase_names),
    { .name = NULL },
};

/* Slack: LH_FIELD_NO_INT if all calls are critical. */
typedef struct {
    PathTime time;
    const char *kind, *name, *phase;
    uint64_t calls, path_calls, calls_without_slack;
    LhWide time_sum_ps;
    LhTime least_slack_ps, most_slack_ps;
} Calls;

static const char *const call_kinds[] = { "compute", "exchange", "collective", NULL };

static const LhField calls_fields[] = {
    PATH_TIME_ROWS(Calls, time),
    LH_FIELD_ROW(STRING, Calls, kind, "kind", ALWAYS, .choices = call_kinds,
                 .description = "Kind of op."),
    LH_FIELD_ROW(STRING, Calls, name, "name", ALWAYS,
                 .description = "Kernel, collective, or highest tier of the messages."),
    LH_FIELD_ROW(STRING, Calls, phase, "phase", ALWAYS, .choices = lh_phase_names,
                 .description = "Phase of the schedule."),
    LH_FIELD_ROW(UINT, Calls, calls, "calls", ALWAYS,
                 .description = "Number of calls on all ranks."),
    LH_FIELD_SECONDS_ROW(WIDE, Calls, time_sum_ps, "time_sum_s", ALWAYS, .max = -1,
                         .description = "Sum of durations from start to end."),
    LH_FIELD_ROW(UINT, Calls, path_calls, "path_calls", ALWAYS,
                 .description = "Calls with time on the critical path."),
    LH_FIELD_ROW(UINT, Calls, calls_without_slack, "calls_without_slack", ALWAYS,
                 .description = "Calls without slack, which lengthen the run if they take longer."),
    LH_FIELD_SECONDS_ROW(INT, Calls, least_slack_ps, "least_slack_s", OR_NULL, .max = -1,
                         .description = "Smallest slack of the other calls; null: none."),
    LH_FIELD_SECONDS_ROW(INT, Calls, most_slack_ps, "most_slack_s", OR_NULL, .max = -1,
                         .description = "Largest slack of the other calls; null: none."),
    { .name = NULL },
};

/* A speed-up of calls or of an op. */
typedef struct {
    PathTime time;
    uint64_t calls_index, rank, op, layer, micro_batch;
    LhTime predicted_ps, saved_ps;
    int saving; /* LhSavingState */
} Faster;

#define FASTER_CALLS                                                                               \
    PATH_TIME_ROWS(Faster, time), LH_FIELD_ROW(UINT, Faster, calls_index, "calls_index", ALWAYS,   \
                                               .description = "Index of the group in calls.")
#define FASTER_OP                                                                                  \
    LH_FIELD_ROW(UINT, Faster, rank, "rank", ALWAYS, .description = "Rank of the op."),            \
        LH_FIELD_ROW(UINT, Faster, op, "op", ALWAYS,                                               \
                     .description = "Number of the op in the rank's program."),                    \
        LH_FIELD_ROW(UINT, Faster, layer, "layer", ALWAYS,                                         \
                     .description = "Layer of the step, from 0."),                                 \
        LH_FIELD_ROW(UINT, Faster, micro_batch, "micro_batch", ALWAYS,                             \
                     .description = "Micro-batch of the step, from 0.")
#define FASTER_PREDICTED                                                                           \
    LH_FIELD_SECONDS_ROW(                                                                          \
        UINT, Faster, predicted_ps, "predicted_s", ALWAYS,                                         \
        .description =                                                                             \
            "Predicted saving, unless another path takes over: path_s x (1 - 1 / 1.1).")
#define FASTER_SAVED                                                                               \
    LH_FIELD_SECONDS_ROW(INT, Faster, saved_ps, "saved_s", ALWAYS,                                 \
                         .description = "Simulated saving; negative: slower."),                    \
        LH_FIELD_ROW(CHOICE, Faster, saving, "saving", ALWAYS, .choices = lh_saving_names,         \
                     .description =                                                                \
                         "Why the two differ by more than 5 % of the prediction, if they do.")

static const LhField faster_calls_fields[] = {
    FASTER_CALLS,
    FASTER_PREDICTED,
    FASTER_SAVED,
    { .name = NULL },
};
static const LhField faster_op_fields[] = {
    FASTER_CALLS, FASTER_OP, FASTER_PREDICTED, FASTER_SAVED, { .name = NULL },
};
/* For a run that cannot be simulated again. */
static const LhField executed_calls_fields[] = {
    FASTER_CALLS,
    FASTER_PREDICTED,
    { .name = NULL },
};
static const LhField executed_op_fields[] = {
    FASTER_CALLS,
    FASTER_OP,
    FASTER_PREDICTED,
    { .name = NULL },
};

typedef struct {
    LhTime from_ps, to_ps;
    const char *of;
    uint64_t rank, op, peer;
} Step;

static const LhField path_step_fields[] = {
    LH_FIELD_SECONDS_ROW(UINT, Step, from_ps, "from_s", ALWAYS,
                         .description = "Start of the step."),
    LH_FIELD_SECONDS_ROW(UINT, Step, to_ps, "to_s", ALWAYS,
                         .description = "Resource on which its time is spent, as in resources."),
    LH_FIELD_ROW(STRING, Step, of, "of", ALWAYS,
                 .description = "What its time is spent on, as in resources."),
    LH_FIELD_ROW(UINT, Step, rank, "rank", ALWAYS,
                 .description = "Rank of the op; for a message, the sender."),
    LH_FIELD_ROW(UINT, Step, op, "op", ALWAYS, .description = "Number of the op."),
    LH_FIELD_ROW(UINT, Step, peer, "peer", ALWAYS,
                 .description = "For a message, the receiving rank; else the rank."),
    { .name = NULL },
};

struct _LhPathParts {
    LhTime makespan_ps;
    GArray *resources, *phases; /* of PathPart */
    GArray *ranks_ps;           /* of LhTime, by rank; borrowed */
    GArray *calls;              /* of Calls */
    GArray *by_group, *by_op;   /* of Faster */
    GArray *steps;              /* of Step */
    GStringChunk *names;        /* strings of the parts */
};

#define PARTS(kind, of, member, key, ...)                                                          \
    LH_FIELD_ROW(kind, of, parts.member, key, ALWAYS, __VA_ARGS__)

/* @faster_calls, @faster_op: tables of fields. */
#define PATH_ROWS(of, faster_calls, faster_op)                                                     \
    LH_FIELD_SECONDS_ROW(UINT, of, parts.makespan_ps, "makespan_s", ALWAYS,                        \
                         .description = "Makespan of the run."),                                   \
        PARTS(ARRAY, of, resources, "resources", .fields = resource_fields,                        \
              .element_size = sizeof(PathPart),                                                    \
              .description =                                                                       \
                  "The critical path by resource, longest first; path_s add up to makespan_s."),   \
        PARTS(ARRAY, of, phases, "phases", .fields = phase_fields,                                 \
              .element_size = sizeof(PathPart),                                                    \
              .description = "The critical path by phase of the schedule."),                       \
        LH_FIELD_SECONDS_ROW(UINTS, of, parts.ranks_ps, "ranks_s", ALWAYS,                         \
                             .description =                                                        \
                                 "The critical path by rank; messages count for the sender."),     \
        PARTS(ARRAY, of, calls, "calls", .fields = calls_fields, .element_size = sizeof(Calls),    \
              .description = "Groups of equal ops, those with most time on the path first. Their " \
                             "path_s and the host's share of resources add up to makespan_s."),    \
        PARTS(ARRAY, of, by_group, "calls_10_percent_faster", .fields = faster_calls,              \
              .element_size = sizeof(Faster),                                                      \
              .description =                                                                       \
                  "The ten groups with most time on the path, each with all its calls 1.1 times "  \
                  "as fast; largest saving first if the run can be simulated again."),             \
        PARTS(ARRAY, of, by_op, "ops_10_percent_faster", .fields = faster_op,                      \
              .element_size = sizeof(Faster),                                                      \
              .description = "The same for the ten single ops with most time on the path."),       \
        PARTS(ARRAY, of, steps, "steps", .fields = path_step_fields, .element_size = sizeof(Step), \
              .description = "The critical path: contiguous steps from 0 to makespan_s.")

typedef struct {
    LhPathParts parts;
} ExecutedPath;

const LhField lh_executed_path_fields[] = {
    PATH_ROWS(ExecutedPath, executed_calls_fields, executed_op_fields),
    { .name = NULL },
};

/* ---- from the path ---- */

static PathTime
path_time(const LhCritical *c, LhTime path_ps)
{
    return (PathTime){ path_ps, (double)path_ps / (double)MAX(c->makespan_ps, 1) };
}

/* Lives as long as the parts. */
static const char *
name_of_resource(LhPathParts *parts, uint8_t kind, uint8_t tiers)
{
    g_autofree char *name = lh_resource_name(kind, tiers);

    return g_string_chunk_insert_const(parts->names, name);
}

static void
add_shares(LhPathParts *parts, const LhCritical *c)
{
    for (guint i = 0; i < c->resources->len; i++) {
        const LhPathShare *share = &g_array_index(c->resources, LhPathShare, i);
        const PathPart part = { path_time(c, share->time_ps),
                                name_of_resource(parts, share->kind, share->tiers) };

        g_array_append_val(parts->resources, part);
    }
    for (int phase = 0; phase < LH_PHASES; phase++) {
        const PathPart part = { path_time(c, c->phases_ps[phase]), lh_phase_names[phase] };

        if (c->phases_ps[phase] != 0)
            g_array_append_val(parts->phases, part);
    }
}

static void
add_calls(LhPathParts *parts, const LhCritical *c)
{
    for (uint32_t i = 0; i < c->groups->len; i++) {
        const LhCallGroup *group = &g_array_index(c->groups, LhCallGroup, i);
        const bool slack = group->most_ps > 0;
        g_autofree char *name = lh_call_group_name(group);
        const Calls calls = { .time = path_time(c, group->path_ps),
                              .kind = lh_op_kind_names[group->kind],
                              .name = g_string_chunk_insert_const(parts->names, name),
                              .phase = lh_phase_names[group->phase],
                              .calls = group->calls,
                              .path_calls = group->path_calls,
                              .calls_without_slack = group->critical,
                              .time_sum_ps = group->time_ps,
                              .least_slack_ps = slack ? group->least_ps : LH_FIELD_NO_INT,
                              .most_slack_ps = slack ? group->most_ps : LH_FIELD_NO_INT };

        g_array_append_val(parts->calls, calls);
    }
}

/* Array of Faster. */
static GArray *
find_faster(const LhCritical *c, const GArray *all)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Faster));

    for (guint i = 0; i < all->len; i++) {
        const LhSpeedUp *what = &g_array_index(all, LhSpeedUp, i);
        const Faster faster = { .time = path_time(c, what->path_ps),
                                .calls_index = what->group,
                                .rank = what->rank,
                                .op = what->op,
                                .layer = what->layer,
                                .micro_batch = what->micro_batch,
                                .predicted_ps = what->predicted_ps,
                                .saved_ps = what->saved_ps,
                                .saving = what->state };

        g_array_append_val(list, faster);
    }
    return list;
}

static void
add_steps(LhPathParts *parts, const GArray *path)
{
    for (guint i = 0; i < path->len; i++) {
        const LhPathStep *at = &g_array_index(path, LhPathStep, i);
        const Step step = { .from_ps = at->from_ps,
                            .to_ps = at->to_ps,
                            .of = name_of_resource(parts, at->kind, at->tiers),
                            .rank = at->rank,
                            .op = at->op,
                            .peer = at->peer };

        g_array_append_val(parts->steps, step);
    }
}

LhPathParts *
lh_path_parts_new(const LhCritical *c, const GArray *path)
{
    LhPathParts *parts = g_new(LhPathParts, 1);

    *parts = (LhPathParts){
        .makespan_ps = c->makespan_ps,
        .resources = g_array_new(FALSE, FALSE, sizeof(PathPart)),
        .phases = g_array_new(FALSE, FALSE, sizeof(PathPart)),
        .ranks_ps = g_array_ref(c->ranks_ps),
        .calls = g_array_new(FALSE, FALSE, sizeof(Calls)),
        .by_group = find_faster(c, c->by_group),
        .by_op = find_faster(c, c->by_op),
        .steps = g_array_sized_new(FALSE, FALSE, sizeof(Step), path->len),
        .names = g_string_chunk_new(NAMES_SIZE),
    };
    add_shares(parts, c);
    add_calls(parts, c);
    add_steps(parts, path);
    return parts;
}

void
lh_path_parts_free(LhPathParts *parts)
{
    g_array_unref(parts->resources);
    g_array_unref(parts->phases);
    g_array_unref(parts->ranks_ps);
    g_array_unref(parts->calls);
    g_array_unref(parts->by_group);
    g_array_unref(parts->by_op);
    g_array_unref(parts->steps);
    g_string_chunk_free(parts->names);
    g_free(parts);
}

/* ---- the document ---- */

typedef struct {
    LhDocumentHead head;
    LhCaseValues of_case;
    const char *schedule;
    LhPathParts parts;
} PathDocument;

static const char *const path_schema[] = { "longhaul.path/1", NULL };

const LhField lh_path_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(PathDocument, head, path_schema),
    LH_DOCUMENT_ASKED(PathDocument, head),
    LH_FIELD_ROW(OBJECT, PathDocument, of_case, "case", ALWAYS, .fields = lh_case_fields,
                 .description = "The simulated case."),
    LH_FIELD_ROW(STRING, PathDocument, schedule, "schedule", ALWAYS,
                 .description = "Name of the schedule or program."),
    PATH_ROWS(PathDocument, faster_calls_fields, faster_op_fields),
    { .name = NULL },
};

void
lh_critical_json(const LhSetup *setup, const LhCompareRow *row, const LhCritical *c,
                 const LhStamp *stamp, GString *out)
{
    g_autoptr(LhPathParts) parts = lh_path_parts_new(c, row->result->path);
    g_auto(LhDocumentHead) head = lh_document_head(path_schema[0], stamp, setup);
    g_auto(LhCaseValues) of_case = lh_case_values(setup);
    const PathDocument document = {
        .head = head, .of_case = of_case, .schedule = row->name, .parts = *parts
    };

    lh_json_encode_text(lh_path_fields, &document, out);
}
