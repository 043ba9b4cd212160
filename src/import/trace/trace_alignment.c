/* See the header. */
#include "import/trace/trace_alignment.h"

#include "base/error.h"
#include "measure/fit.h"
#include "program/cursor.h"
#include "program/timeline.h"
#include "scenario/setup_simulate.h"
#include "sim/cost/cost.h"

#include <math.h>
#include <string.h>

/* Kinds of calls that are counted on their own: attention, and what is moved. */
enum { KEY_ATTEND, KEY_ATTEND_GRAD, KEY_TRANSFERS, KEYS = KEY_TRANSFERS + LH_GPU_TRACE_UNKNOWN };

/* A communicating op's place among those that meet. */
typedef struct {
    LhCommunicatorKey key; /* of messages: source, destination in base, stride */
    bool message;
    uint32_t turn;
} Meeting;

typedef struct {
    const LhGpuTraceRun *run;
    const LhSetup *setup;
    const LhProgram *program;
    LhTraceAlignment *match;
    GPtrArray *durations; /* by record: of double, a GArray; NULL: not seen */
    uint32_t *first;      /* [ranks + 1]: of a rank's records */
    GHashTable *meetings; /* of Meeting: of members, a GArray of guint */
    GHashTable *turns;    /* of Meeting with turn 0: how many there were, by end */
    GPtrArray *order;     /* of Meeting *, borrowed: as they came */
} MatchJob;

static LhTimelineRecord *
record_at(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}

static double
duration_s(const LhTimelineRecord *r)
{
    return (double)(r->end_ps - r->start_ps) / (double)LH_PS_PER_S;
}

/* --- simulating ---------------------------------------------------------------------------------
 */

static void
collect(void *data, const LhTimelineRecord *record)
{
    GArray *records = data;

    g_array_append_vals(records, record, 1);
}

bool
lh_trace_alignment_simulate(const LhSetup *setup, const LhProgram *program,
                            const LhNetwork *network, GArray *records, LhTime *makespan_ps,
                            GError **error)
{
    const LhHooks hooks = { .timeline = collect, .timeline_data = records };
    LhSimResult *result;

    g_array_set_size(records, 0);
    result = lh_setup_simulate(setup, program, network, NULL, &hooks, error);
    if (result == NULL)
        return false;
    *makespan_ps = result->makespan_ps;
    lh_sim_result_free(result);
    g_array_sort(records, lh_timeline_by_rank_and_op);
    return true;
}

double
lh_sample_seconds(const LhTraceAlignment *match, const LhSample *sample, const GArray *records)
{
    double least = INFINITY;

    for (guint i = 0; i < sample->count; i++) {
        const guint member = g_array_index(match->members, guint, sample->first + i);

        least = fmin(least, duration_s(record_at(records, member)));
    }
    return least;
}

/* --- kernels and ops ----------------------------------------------------------------------------
 */

static int
key_of_seen(const LhGpuTrace *seen)
{
    switch (seen->class) {
    case LH_GPU_TRACE_ATTEND:
        return KEY_ATTEND;
    case LH_GPU_TRACE_ATTEND_GRAD:
        return KEY_ATTEND_GRAD;
    case LH_GPU_TRACE_COMM:
        return seen->transfer < LH_GPU_TRACE_UNKNOWN ? KEY_TRANSFERS + seen->transfer : -1;
    default:
        return -1;
    }
}

static int
key_of_compute(LhKernelId kernel)
{
    switch (lh_kernels[kernel]->effect) {
    case LH_EFFECT_ATTEND:
        return KEY_ATTEND;
    case LH_EFFECT_ATTEND_GRAD:
        return KEY_ATTEND_GRAD;
    default:
        return -1;
    }
}

static const char *
key_name(int key)
{
    if (key < KEY_TRANSFERS)
        return lh_gpu_trace_class_names[key == KEY_ATTEND ? LH_GPU_TRACE_ATTEND
                                                          : LH_GPU_TRACE_ATTEND_GRAD];
    return key - KEY_TRANSFERS == LH_GPU_TRACE_MESSAGES ? "exchange"
                                                        : lh_collective_names[key - KEY_TRANSFERS];
}

/* Of the ops of a rank, those of each key. */
typedef struct {
    GArray *of[KEYS];           /* of guint: indices of records, in the program's order */
    GArray *started[KEYS];      /* the same in the order in which they start, simulated */
    uint64_t group_sizes[KEYS]; /* of collectives, the largest */
} Ops;

static void
clear_ops(Ops *ops)
{
    for (int k = 0; k < KEYS; k++) {
        g_array_unref(ops->of[k]);
        g_array_unref(ops->started[k]);
    }
}

static gint
meetings_by_start(gconstpointer a, gconstpointer b, gpointer data)
{
    const LhTimelineRecord *x = record_at(data, *(const guint *)a);
    const LhTimelineRecord *y = record_at(data, *(const guint *)b);

    if (x->start_ps != y->start_ps)
        return x->start_ps < y->start_ps ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static guint
find_record(const MatchJob *job, uint32_t rank, uint32_t op)
{
    guint low = job->first[rank], high = job->first[rank + 1];

    while (low < high) {
        const guint middle = low + (high - low) / 2;

        if (record_at(job->match->records, middle)->op < op)
            low = middle + 1;
        else
            high = middle;
    }
    g_assert(low < job->first[rank + 1] && record_at(job->match->records, low)->op == op);
    return low;
}

/* --- who meets whom -----------------------------------------------------------------------------
 */

static guint
meeting_hash(gconstpointer data)
{
    const Meeting *m = data;

    return lh_communicator_hash(&m->key) * 31u + m->turn * 2u + m->message;
}

static gboolean
meeting_equal(gconstpointer a, gconstpointer b)
{
    const Meeting *x = a, *y = b;

    return x->turn == y->turn && x->message == y->message &&
           lh_communicator_compare(&x->key, &y->key) == 0;
}

/* How many meetings of this kind the rank, or this end of messages, has had; one more now. */
static uint32_t
next_turn(MatchJob *job, Meeting kind, uint32_t end)
{
    Meeting counted = kind;
    gpointer had;

    counted.turn = end;
    had = g_hash_table_lookup(job->turns, &counted);
    g_hash_table_insert(job->turns, g_memdup2(&counted, sizeof(counted)),
                        GUINT_TO_POINTER(GPOINTER_TO_UINT(had) + 1));
    return GPOINTER_TO_UINT(had);
}

static void
join_meeting(MatchJob *job, Meeting kind, uint32_t end, guint record)
{
    GArray *members;

    kind.turn = next_turn(job, kind, end);
    members = g_hash_table_lookup(job->meetings, &kind);
    if (members == NULL) {
        Meeting *key = g_memdup2(&kind, sizeof(kind));

        members = g_array_new(FALSE, FALSE, sizeof(guint));
        g_hash_table_insert(job->meetings, key, members);
        g_ptr_array_add(job->order, key);
    }
    g_array_append_val(members, record);
}

static void
read_exchange(MatchJob *job, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer, guint record)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        const Meeting kind = { .key = { .number = op->communicator,
                                        .group = { .base = part->send ? rank : part->peer,
                                                   .stride = part->send ? part->peer : rank,
                                                   .count = 2,
                                                   .outer_count = 1 } },
                               .message = true };

        join_meeting(job, kind, part->send ? 1 : 0, record);
    }
}

static void
read_op(MatchJob *job, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer, Ops *ops)
{
    const int kind = op->kind;
    int key = -1;
    guint record;

    if (kind == LH_OP_COMPUTE)
        key = key_of_compute(op->compute.kernel);
    else if (kind == LH_OP_EXCHANGE)
        key = KEY_TRANSFERS + LH_GPU_TRACE_MESSAGES;
    else if (kind == LH_OP_COLLECTIVE)
        key = KEY_TRANSFERS + (int)op->collective.kind;
    if (key < 0)
        return;
    record = find_record(job, rank, op->id);
    g_array_append_val(ops->of[key], record);
    if (kind == LH_OP_COMPUTE) {
        LhTraceBlock *block = &g_array_index(job->match->blocks, LhTraceBlock, record);

        block->triangle = lh_cost_is_triangle(&op->compute.args, &block->keys);
    }
    if (kind == LH_OP_EXCHANGE)
        read_exchange(job, rank, op, buffer, record);
    if (kind == LH_OP_COLLECTIVE) {
        ops->group_sizes[key] = MAX(ops->group_sizes[key], lh_group_size(&op->collective.group));
        join_meeting(job, (Meeting){ .key = lh_op_communicator(op) }, rank, record);
    }
}

static void
read_program(MatchJob *job, uint32_t rank, Ops *ops)
{
    LhCursor cursor;
    LhOpBuffer buffer = { 0 };

    for (int k = 0; k < KEYS; k++) {
        ops->of[k] = g_array_new(FALSE, FALSE, sizeof(guint));
        ops->group_sizes[k] = 0;
    }
    lh_cursor_init(&cursor, job->program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++)
            read_op(job, rank, &buffer.ops[i], &buffer, ops);
    }
    lh_op_buffer_clear(&buffer);
    for (int k = 0; k < KEYS; k++) {
        ops->started[k] = g_array_copy(ops->of[k]);
        g_array_sort_with_data(ops->started[k], meetings_by_start, job->match->records);
    }
}

/* --- one rank -----------------------------------------------------------------------------------
 */

/* The steps that count: without the first and the last, which a profiler often cuts, where there
 * are more; where none is marked, all of the time is one. Caller unrefs. */
static GArray *
steps_of(const LhGpuTraceRun *run, uint32_t rank)
{
    GArray *steps = g_array_new(FALSE, FALSE, sizeof(LhGpuTraceStep));
    const LhGpuTraceStep all = { .start_ns = INT64_MIN, .end_ns = INT64_MAX, .rank = rank };

    for (guint i = 0; i < run->steps->len; i++) {
        const LhGpuTraceStep *step = &g_array_index(run->steps, LhGpuTraceStep, i);

        if (step->rank == rank)
            g_array_append_vals(steps, step, 1);
    }
    if (steps->len >= 3) {
        g_array_remove_index(steps, steps->len - 1);
        g_array_remove_index(steps, 0);
    }
    if (steps->len == 0)
        g_array_append_val(steps, all);
    return steps;
}

/* Whether it may be one of the ops of its key. */
static bool
may_be(const LhGpuTrace *seen, int key, const Ops *ops)
{
    return key < KEY_TRANSFERS || key == KEY_TRANSFERS + LH_GPU_TRACE_MESSAGES ||
           seen->group_size == 0 || seen->group_size == ops->group_sizes[key];
}

/* The first kernel of @rank that starts at @start_ns or later, or that of a later rank. */
static guint
find_seen(const LhGpuTraceRun *run, uint32_t rank, int64_t start_ns)
{
    guint low = 0, high = run->kernels->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;
        const LhGpuTrace *seen = &g_array_index(run->kernels, LhGpuTrace, middle);

        if (seen->rank < rank || (seen->rank == rank && seen->start_ns < start_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int
by_launch(const void *a, const void *b)
{
    const LhGpuTrace *x = *(const LhGpuTrace *const *)a, *y = *(const LhGpuTrace *const *)b;

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* The kernels of @key of @rank that start in @step: of const LhGpuTrace *, as they were launched,
 * if that is said of all (*@ordered), else as they started. Caller unrefs. */
static GPtrArray *
seen_in(const MatchJob *job, uint32_t rank, const LhGpuTraceStep *step, int key, const Ops *ops,
        bool *ordered)
{
    GPtrArray *kernels = g_ptr_array_new();
    const guint end = find_seen(job->run, rank, step->end_ns);

    *ordered = true;
    for (guint i = find_seen(job->run, rank, step->start_ns); i < end; i++) {
        LhGpuTrace *seen = &g_array_index(job->run->kernels, LhGpuTrace, i);

        if (key_of_seen(seen) != key || !may_be(seen, key, ops))
            continue;
        *ordered = *ordered && seen->order > 0;
        g_ptr_array_add(kernels, seen);
    }
    if (*ordered && kernels->len > 0)
        qsort(kernels->pdata, kernels->len, sizeof(gpointer), by_launch);
    return kernels;
}

static const char *
path_of(const LhGpuTraceRun *run, uint32_t rank)
{
    for (guint i = 0; i < run->files->len; i++) {
        if (g_array_index(run->files, LhGpuTraceFile, i).rank == rank)
            return g_array_index(run->files, LhGpuTraceFile, i).path;
    }
    return g_array_index(run->files, LhGpuTraceFile, 0).path;
}

static char *
step_name(const LhGpuTraceStep *step)
{
    return step->start_ns == INT64_MIN ? g_strdup("the trace")
                                       : g_strdup_printf("step %" G_GUINT64_FORMAT, step->number);
}

/* What is wrong with the number of kernels. Caller frees. */
static char *
say_mismatch(const MatchJob *job, uint32_t rank, const LhGpuTraceStep *step, int key, guint found,
             guint expected)
{
    g_autofree char *where = step_name(step);

    return g_strdup_printf("%s: rank %u has %u kernels of %s in %s; schedule %s has %u in each "
                           "call; allowed: a multiple of them",
                           path_of(job->run, rank), rank, found, key_name(key), where,
                           job->program->name, expected);
}

static void
add_duration(MatchJob *job, guint record, double seconds)
{
    GArray **to = (GArray **)&g_ptr_array_index(job->durations, record);

    if (*to == NULL)
        *to = g_array_new(FALSE, FALSE, sizeof(double));
    g_array_append_val(*to, seconds);
}

/* Gives the kernels of a step to the ops in turn. False, with a note, if their number is wrong. */
static bool
match_step(MatchJob *job, uint32_t rank, const LhGpuTraceStep *step, int key, const Ops *ops,
           char **wrong)
{
    bool ordered;
    g_autoptr(GPtrArray) kernels = seen_in(job, rank, step, key, ops, &ordered);
    const GArray *expected = ordered ? ops->of[key] : ops->started[key];

    if (kernels->len == 0 || kernels->len % expected->len != 0) {
        *wrong = say_mismatch(job, rank, step, key, kernels->len, expected->len);
        return false;
    }
    for (guint i = 0; i < kernels->len; i++) {
        const LhGpuTrace *seen = g_ptr_array_index(kernels, i);

        add_duration(job, g_array_index(expected, guint, i % expected->len),
                     (double)(seen->end_ns - seen->start_ns) / 1e9);
    }
    if (key == KEY_ATTEND)
        job->match->calls = kernels->len / expected->len;
    return true;
}

static void
forget(MatchJob *job, const GArray *expected)
{
    for (guint i = 0; i < expected->len; i++) {
        GArray **of =
            (GArray **)&g_ptr_array_index(job->durations, g_array_index(expected, guint, i));

        g_clear_pointer(of, g_array_unref);
    }
}

static bool
match_key(MatchJob *job, uint32_t rank, const GArray *steps, int key, const Ops *ops,
          GError **error)
{
    char *wrong = NULL;

    if (ops->of[key]->len == 0)
        return true;
    for (guint i = 0; i < steps->len && wrong == NULL; i++)
        match_step(job, rank, &g_array_index(steps, LhGpuTraceStep, i), key, ops, &wrong);
    if (wrong == NULL)
        return true;
    if (key < KEY_TRANSFERS) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s", wrong);
        g_free(wrong);
        return false;
    }
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; key is one of KEYS */
    forget(job, ops->of[key]);
    g_ptr_array_add(job->match->notes, wrong);
    return true;
}

static bool
has_kernels(const LhGpuTraceRun *run, uint32_t rank)
{
    return find_seen(run, rank, INT64_MIN) < find_seen(run, rank, INT64_MAX);
}

static bool
match_rank(MatchJob *job, uint32_t rank, GError **error)
{
    LhTraceAlignment *m = job->match;
    g_autoptr(GArray) steps = steps_of(job->run, rank);
    const bool marked = g_array_index(steps, LhGpuTraceStep, 0).start_ns != INT64_MIN;
    Ops ops;
    bool ok = true;

    read_program(job, rank, &ops);
    if (has_kernels(job->run, rank)) {
        m->steps =
            m->ranks == 0 ? (marked ? steps->len : 0) : MIN(m->steps, marked ? steps->len : 0);
        m->ranks++;
        for (int key = 0; ok && key < KEYS; key++)
            ok = match_key(job, rank, steps, key, &ops, error);
    }
    clear_ops(&ops);
    return ok;
}

/* --- samples ------------------------------------------------------------------------------------
 */

static const GArray *
durations_of(const MatchJob *job, guint record)
{
    return g_ptr_array_index(job->durations, record);
}

/* The shortest member of each repeat, and the median of these. False if none was seen. */
static bool
measure(const MatchJob *job, const guint *members, guint count, LhSample *sample)
{
    g_autoptr(GArray) shortest = NULL;

    for (guint i = 0; i < count; i++) {
        const GArray *seconds = durations_of(job, members[i]);

        if (seconds == NULL)
            continue;
        if (shortest == NULL) {
            shortest = g_array_copy((GArray *)seconds);
            continue;
        }
        g_array_set_size(shortest, MIN(shortest->len, seconds->len));
        for (guint k = 0; k < shortest->len; k++)
            g_array_index(shortest, double, k) =
                fmin(g_array_index(shortest, double, k), g_array_index(seconds, double, k));
    }
    if (shortest == NULL || shortest->len == 0)
        return false;
    sample->repeats = shortest->len;
    sample->measured_s = lh_median((double *)(void *)shortest->data, shortest->len);
    if (!(sample->measured_s > 0))
        return false;
    sample->spread =
        (g_array_index(shortest, double, shortest->len - 1) - g_array_index(shortest, double, 0)) /
        sample->measured_s;
    return true;
}

static void
add_sample(MatchJob *job, const guint *members, guint count)
{
    LhTraceAlignment *m = job->match;
    const LhTimelineRecord *r = record_at(m->records, members[0]);
    const LhTraceBlock *block = &g_array_index(m->blocks, LhTraceBlock, members[0]);
    LhSample sample = { .kind = r->kind,
                        .kernel = r->kernel,
                        .triangle = block->triangle,
                        .keys = block->keys,
                        .tier = LH_TIMELINE_NO_TIER,
                        .transfer = LH_GPU_TRACE_MESSAGES,
                        .first = m->members->len };

    if (!measure(job, members, count, &sample))
        return;
    for (guint i = 0; i < count; i++) {
        if (durations_of(job, members[i]) != NULL)
            g_array_append_val(m->members, members[i]);
    }
    sample.count = m->members->len - sample.first;
    g_array_append_val(m->samples, sample);
}

/* The highest tier that a message crosses on its way. */
static uint8_t
tier_of(const LhNetwork *network, uint32_t from, uint32_t to)
{
    LhRoute route;

    if (from == to)
        return LH_TIMELINE_NO_TIER;
    lh_network_route(network, from, to, &route);
    return route.tier;
}

static uint8_t
tier_of_group(const LhNetwork *network, const LhGroup *group)
{
    const uint32_t first = (uint32_t)lh_group_member(group, 0);
    uint8_t tier = LH_TIMELINE_NO_TIER;

    for (uint64_t i = 1; i < lh_group_size(group); i++) {
        const uint8_t one = tier_of(network, first, (uint32_t)lh_group_member(group, i));

        tier = tier == LH_TIMELINE_NO_TIER ? one : MAX(tier, one);
    }
    return tier;
}

static void
add_meeting(MatchJob *job, const Meeting *meeting)
{
    const GArray *members = g_hash_table_lookup(job->meetings, meeting);
    const guint had = job->match->samples->len;
    const LhGroup *g = &meeting->key.group;
    LhSample *sample;

    add_sample(job, &g_array_index(members, guint, 0), members->len);
    if (job->match->samples->len == had)
        return;
    sample = &g_array_index(job->match->samples, LhSample, had);
    sample->tier = meeting->message ? tier_of(&job->setup->network, g->base, g->stride)
                                    : tier_of_group(&job->setup->network, g);
}

static double
median_of(const GArray *seconds)
{
    g_autoptr(GArray) copy = seconds == NULL ? NULL : g_array_copy((GArray *)seconds);

    return copy == NULL ? 0 : lh_median((double *)(void *)copy->data, copy->len);
}

static void
make_samples(MatchJob *job)
{
    LhTraceAlignment *m = job->match;

    for (guint i = 0; i < m->records->len; i++) {
        const double median = median_of(durations_of(job, i));

        g_array_append_val(m->measured, median);
        if (record_at(m->records, i)->kind == LH_OP_COMPUTE)
            add_sample(job, &i, 1);
    }
    for (guint i = 0; i < job->order->len; i++)
        add_meeting(job, g_ptr_array_index(job->order, i));
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void
array_unref(gpointer array)
{
    if (array != NULL)
        g_array_unref(array);
}

/* Where the records of each rank begin. Caller frees. */
static uint32_t *
find_ranks(const GArray *records, uint32_t ranks)
{
    uint32_t *first = g_new0(uint32_t, ranks + 1);

    for (guint i = 0; i < records->len; i++)
        first[record_at(records, i)->rank + 1]++;
    for (uint32_t r = 0; r < ranks; r++)
        first[r + 1] += first[r];
    return first;
}

static bool
check_ranks(const MatchJob *job, uint32_t ranks, GError **error)
{
    for (guint i = 0; i < job->run->kernels->len; i++) {
        const uint32_t rank = g_array_index(job->run->kernels, LhGpuTrace, i).rank;

        if (rank < ranks)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: a trace of rank %u; the program has ranks 0 to %u",
                    path_of(job->run, rank), rank, ranks - 1);
        return false;
    }
    return true;
}

static bool
match_all(MatchJob *job, GError **error)
{
    const uint32_t ranks = lh_program_ranks(job->program);
    LhTime makespan_ps;

    if (!check_ranks(job, ranks, error) ||
        !lh_trace_alignment_simulate(job->setup, job->program, NULL, job->match->records,
                                     &makespan_ps, error))
        return false;
    g_ptr_array_set_size(job->durations, (gint)job->match->records->len);
    g_array_set_size(job->match->blocks, job->match->records->len);
    job->first = find_ranks(job->match->records, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (!match_rank(job, rank, error))
            return false;
    }
    make_samples(job);
    return true;
}

LhTraceAlignment *
lh_trace_alignment_new(const LhGpuTraceRun *run, const LhSetup *setup, const LhProgram *program,
                       GError **error)
{
    g_autoptr(LhTraceAlignment) match = g_new0(LhTraceAlignment, 1);
    MatchJob job = { .run = run, .setup = setup, .program = program, .match = match };
    bool ok;

    match->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    match->samples = g_array_new(FALSE, FALSE, sizeof(LhSample));
    match->members = g_array_new(FALSE, FALSE, sizeof(guint));
    match->blocks = g_array_new(FALSE, TRUE, sizeof(LhTraceBlock));
    match->measured = g_array_new(FALSE, FALSE, sizeof(double));
    match->notes = g_ptr_array_new_with_free_func(g_free);
    job.durations = g_ptr_array_new_with_free_func(array_unref);
    job.meetings = g_hash_table_new_full(meeting_hash, meeting_equal, g_free, array_unref);
    job.turns = g_hash_table_new_full(meeting_hash, meeting_equal, g_free, NULL);
    job.order = g_ptr_array_new();
    ok = match_all(&job, error);
    g_ptr_array_unref(job.order);
    g_hash_table_unref(job.turns);
    g_hash_table_unref(job.meetings);
    g_ptr_array_unref(job.durations);
    g_free(job.first);
    return ok ? g_steal_pointer(&match) : NULL;
}

void
lh_trace_alignment_free(LhTraceAlignment *match)
{
    if (match == NULL)
        return;
    g_array_unref(match->records);
    g_array_unref(match->samples);
    g_array_unref(match->members);
    g_array_unref(match->blocks);
    g_array_unref(match->measured);
    g_ptr_array_unref(match->notes);
    g_free(match);
}
