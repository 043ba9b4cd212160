/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns the kernels traced on a rank to its ops in order, step by step. */
#include "import/trace/alignment_private.h"

#include "base/error.h"
#include "import/trace/gpu_kernel_names.h"

static int
key_of_seen(const LhGpuTrace *seen)
{
    switch (seen->class) {
    case LH_GPU_TRACE_ATTEND:
        return LH_KEY_ATTEND;
    case LH_GPU_TRACE_ATTEND_GRAD:
        return LH_KEY_ATTEND_GRAD;
    case LH_GPU_TRACE_COMM:
        return seen->transfer < LH_GPU_TRACE_UNKNOWN ? LH_KEY_TRANSFERS + seen->transfer : -1;
    default:
        return -1;
    }
}

static const char *
key_name(int key)
{
    if (key < LH_KEY_TRANSFERS)
        return lh_gpu_trace_class_names[key == LH_KEY_ATTEND ? LH_GPU_TRACE_ATTEND
                                                             : LH_GPU_TRACE_ATTEND_GRAD];
    return key - LH_KEY_TRANSFERS == LH_GPU_TRACE_MESSAGES
               ? "exchange"
               : lh_collective_names[key - LH_KEY_TRANSFERS];
}

/* The steps to use: all but the first and last, which a profiler often cuts, if there are at least
 * three; the whole trace if no step is marked. Caller unrefs. */
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

/* Whether the kernel may be one of the ops of its key. */
static bool
may_be(const LhGpuTrace *seen, int key, const LhTraceOps *ops)
{
    return key < LH_KEY_TRANSFERS || key == LH_KEY_TRANSFERS + LH_GPU_TRACE_MESSAGES ||
           seen->group_size == 0 || seen->group_size == ops->group_sizes[key];
}

/* Index of the first kernel of @rank that starts at or after @start_ns, or of a later rank. */
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

/* Kernels of @key of @rank that start in @step (const LhGpuTrace *): in launch order if it is known
 * for all (*@ordered), else by start. Caller unrefs. */
static GPtrArray *
seen_in(const LhTraceMatch *job, uint32_t rank, const LhGpuTraceStep *step, int key,
        const LhTraceOps *ops, bool *ordered)
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

const char *
lh_match_path(const LhGpuTraceRun *run, uint32_t rank)
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

/* Describes a wrong number of kernels. Caller frees. */
static char *
say_mismatch(const LhTraceMatch *job, uint32_t rank, const LhGpuTraceStep *step, int key,
             guint found, guint expected)
{
    g_autofree char *where = step_name(step);

    return g_strdup_printf("%s: rank %u has %u kernels of %s in %s; schedule %s has %u in each "
                           "call; allowed: a multiple of them",
                           lh_match_path(job->run, rank), rank, found, key_name(key), where,
                           job->program->name, expected);
}

static void
add_duration(LhTraceMatch *job, guint record, double seconds)
{
    GArray **to = (GArray **)&g_ptr_array_index(job->durations, record);

    if (*to == NULL)
        *to = g_array_new(FALSE, FALSE, sizeof(double));
    g_array_append_val(*to, seconds);
}

/* Assigns the kernels of a step to the ops in order. False, with a message, if their number is
 * wrong. */
static bool
match_step(LhTraceMatch *job, uint32_t rank, const LhGpuTraceStep *step, int key,
           const LhTraceOps *ops, char **wrong)
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
    if (key == LH_KEY_ATTEND)
        job->match->calls = kernels->len / expected->len;
    return true;
}

static void
forget(LhTraceMatch *job, const GArray *expected)
{
    for (guint i = 0; i < expected->len; i++) {
        GArray **of =
            (GArray **)&g_ptr_array_index(job->durations, g_array_index(expected, guint, i));

        g_clear_pointer(of, g_array_unref);
    }
}

static bool
match_key(LhTraceMatch *job, uint32_t rank, const GArray *steps, int key, const LhTraceOps *ops,
          GError **error)
{
    char *wrong = NULL;

    if (ops->of[key]->len == 0)
        return true;
    for (guint i = 0; i < steps->len && wrong == NULL; i++)
        match_step(job, rank, &g_array_index(steps, LhGpuTraceStep, i), key, ops, &wrong);
    if (wrong == NULL)
        return true;
    if (key < LH_KEY_TRANSFERS) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s", wrong);
        g_free(wrong);
        return false;
    }
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; key is one of LH_KEYS */
    forget(job, ops->of[key]);
    g_ptr_array_add(job->match->notes, wrong);
    return true;
}

static bool
has_kernels(const LhGpuTraceRun *run, uint32_t rank)
{
    return find_seen(run, rank, INT64_MIN) < find_seen(run, rank, INT64_MAX);
}

bool
lh_match_rank(LhTraceMatch *job, uint32_t rank, GError **error)
{
    LhTraceAlignment *m = job->match;
    g_autoptr(GArray) steps = steps_of(job->run, rank);
    const bool marked = g_array_index(steps, LhGpuTraceStep, 0).start_ns != INT64_MIN;
    LhTraceOps ops;
    bool ok = true;

    lh_match_program(job, rank, &ops);
    if (has_kernels(job->run, rank)) {
        m->steps =
            m->ranks == 0 ? (marked ? steps->len : 0) : MIN(m->steps, marked ? steps->len : 0);
        m->ranks++;
        for (int key = 0; ok && key < LH_KEYS; key++)
            ok = match_key(job, rank, steps, key, &ops, error);
    }
    lh_match_clear_ops(&ops);
    return ok;
}
