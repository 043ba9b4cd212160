/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host ranges that are steps: the launches in each, and their time on the GPU.
 */
#include "import/trace/nsys_private.h"

#include "base/error.h"

#include <string.h>

#define VISITS_MAX UINT64_C(200000000) /* of spans, some for each kernel */

/* Prefixes of the names of steps, before the number. */
static const char *const step_prefixes[] = { "ProfilerStep#", "step ",      "step_",      "step=",
                                             "iteration ",    "iteration_", "Iteration ", NULL };

bool
lh_nsys_step_number(const char *text, uint64_t *number)
{
    for (guint i = 0; step_prefixes[i] != NULL; i++) {
        const char *digits = text + strlen(step_prefixes[i]);
        char *end;

        if (!g_str_has_prefix(text, step_prefixes[i]) || !g_ascii_isdigit(*digits))
            continue;
        *number = g_ascii_strtoull(digits, &end, 10);
        return *end == '\0';
    }
    return false;
}

static int
by_from(const void *a, const void *b)
{
    const LhNsysSpan *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Sorts spans of correlation ids of the steps that have any, or of host times. */
static void
sort_spans(LhNsysReader *r, bool correlations)
{
    g_clear_pointer(&r->spans, g_array_unref);
    r->spans = g_array_new(FALSE, FALSE, sizeof(LhNsysSpan));
    for (guint i = 0; i < r->steps->len; i++) {
        const LhNsysStep *step = &g_array_index(r->steps, LhNsysStep, i);
        const LhNsysSpan span = { .pid = step->pid,
                                  .from = correlations ? step->first : step->start_ns,
                                  .to = correlations ? step->last
                                                     : MAX(step->end_ns, INT64_MIN + 1) - 1,
                                  .step = i };

        if (span.from <= span.to)
            g_array_append_val(r->spans, span);
    }
    g_array_sort(r->spans, by_from);
    for (guint i = 0; i < r->spans->len; i++) {
        LhNsysSpan *span = &g_array_index(r->spans, LhNsysSpan, i);
        const LhNsysSpan *before = i > 0 && span[-1].pid == span->pid ? span - 1 : NULL;

        span->to_max = before != NULL ? MAX(before->to_max, span->to) : span->to;
    }
}

/* Number of spans of @pid or earlier processes that begin at or before @at. */
static guint
spans_before(const LhNsysReader *r, uint64_t pid, int64_t at)
{
    const LhNsysSpan wanted = { .pid = pid, .from = at };
    guint low = 0, high = r->spans->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;

        if (by_from(&g_array_index(r->spans, LhNsysSpan, middle), &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Calls @take for every step of @pid that spans @at. Steps are normally consecutive, so few are
 * visited; VISITS_MAX limits files in which all overlap. */
static void
each_step(LhNsysReader *r, uint64_t pid, int64_t at,
          void (*take)(LhNsysStep *step, const void *data), const void *data)
{
    for (guint i = spans_before(r, pid, at); i > 0 && r->visits <= VISITS_MAX; i--) {
        const LhNsysSpan *span = &g_array_index(r->spans, LhNsysSpan, i - 1);

        if (span->pid != pid || span->to_max < at)
            return;
        r->visits++;
        if (span->to >= at)
            take(&g_array_index(r->steps, LhNsysStep, span->step), data);
    }
}

static void
take_launch(LhNsysStep *step, const void *data)
{
    const int64_t *correlation = data;

    step->first = MIN(step->first, *correlation);
    step->last = MAX(step->last, *correlation);
}

void
lh_nsys_take_launch(LhNsysReader *r, uint64_t pid, int64_t at, int64_t correlation)
{
    each_step(r, pid, at, take_launch, &correlation);
}

static int
by_start(const void *a, const void *b)
{
    const LhNsysStep *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

void
lh_nsys_sort_steps(LhNsysReader *r)
{
    g_array_sort(r->steps, by_start);
    sort_spans(r, false);
}

static void
take_kernel_time(LhNsysStep *step, const void *data)
{
    const LhGpuTrace *seen = data;

    step->gpu_start_ns = MIN(step->gpu_start_ns, seen->start_ns);
    step->gpu_end_ns = MAX(step->gpu_end_ns, seen->end_ns);
}

/* Sets the GPU time of each step from the kernels that it launched. */
static void
time_steps(LhNsysReader *r)
{
    sort_spans(r, true);
    for (guint i = 0; i < r->pids->len; i++)
        each_step(r, g_array_index(r->pids, uint64_t, i),
                  g_array_index(r->correlations, int64_t, i), take_kernel_time,
                  &g_array_index(r->run->kernels, LhGpuTrace, r->first + i));
}

void
lh_nsys_take_steps(LhNsysReader *r)
{
    time_steps(r);
    for (guint i = 0; i < r->steps->len; i++) {
        const LhNsysStep *step = &g_array_index(r->steps, LhNsysStep, i);
        const LhNsysStep *next = i + 1 < r->steps->len ? step + 1 : NULL;
        LhGpuTraceStep taken = { .start_ns = step->gpu_start_ns,
                                 .end_ns = step->gpu_end_ns,
                                 .number = step->number };

        if (step->gpu_end_ns < step->gpu_start_ns)
            continue;
        taken.rank = lh_nsys_process(r, step->pid)->rank;
        if (next != NULL && next->pid == step->pid && next->gpu_start_ns > step->gpu_start_ns)
            taken.end_ns = MIN(taken.end_ns, next->gpu_start_ns);
        g_array_append_val(r->run->steps, taken);
        r->file.steps++;
    }
}

bool
lh_nsys_check_visits(const LhNsysReader *r, GError **error)
{
    if (r->visits <= VISITS_MAX)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %u ranges have names of steps, and too many of them overlap to tell "
                "which step a kernel belongs to; allowed: consecutive steps",
                r->file.path, r->steps->len);
    return false;
}
