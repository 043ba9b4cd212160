/* SPDX-License-Identifier: Apache-2.0 */
#include "import/trace/gpu_trace.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "import/trace/kineto.h"
#include "import/trace/nsys.h"

#include <string.h>

LhGpuTraceRun *
lh_gpu_trace_new(void)
{
    LhGpuTraceRun *run = g_new(LhGpuTraceRun, 1);

    run->kernels = g_array_new(FALSE, FALSE, sizeof(LhGpuTrace));
    run->steps = g_array_new(FALSE, FALSE, sizeof(LhGpuTraceStep));
    run->files = g_array_new(FALSE, FALSE, sizeof(LhGpuTraceFile));
    return run;
}

void
lh_gpu_trace_free(LhGpuTraceRun *run)
{
    if (run == NULL)
        return;
    for (guint i = 0; i < run->files->len; i++) {
        g_free(g_array_index(run->files, LhGpuTraceFile, i).path);
        g_free(g_array_index(run->files, LhGpuTraceFile, i).sha256);
    }
    g_array_unref(run->kernels);
    g_array_unref(run->steps);
    g_array_unref(run->files);
    g_free(run);
}

/* Whether the file begins like an SQLite database; also false if it cannot be read. */
static bool
is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char begin[sizeof(magic)] = "";
    FILE *file = lh_input_open(path, NULL);
    const bool is = file != NULL && fread(begin, 1, sizeof(begin), file) == sizeof(begin) &&
                    memcmp(begin, magic, sizeof(magic)) == 0;

    if (file != NULL)
        fclose(file);
    return is;
}

bool
lh_gpu_trace_load(LhGpuTraceRun *run, const char *path, GError **error)
{
    return is_database(path) ? lh_nsys_load(run, path, error) : lh_kineto_load(run, path, error);
}

static int
by_rank_and_start(const void *a, const void *b)
{
    const LhGpuTrace *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->stream < y->stream ? -1 : x->stream > y->stream;
}

static int
steps_by_rank_and_start(const void *a, const void *b)
{
    const LhGpuTraceStep *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static bool
check_files(const LhGpuTraceRun *run, GError **error)
{
    for (guint i = 0; i < run->files->len; i++) {
        const LhGpuTraceFile *a = &g_array_index(run->files, LhGpuTraceFile, i);

        for (guint k = 0; k < i; k++) {
            const LhGpuTraceFile *b = &g_array_index(run->files, LhGpuTraceFile, k);

            if (a->rank != b->rank)
                continue;
            g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                        "%s: error: a trace of rank %u, like %s; allowed: one file per rank",
                        a->path, a->rank, b->path);
            return false;
        }
    }
    return true;
}

bool
lh_gpu_trace_finish(LhGpuTraceRun *run, GError **error)
{
    if (!check_files(run, error))
        return false;
    if (run->kernels->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: no attention kernel and no communication among its events; "
                    "docs/manual/traces.md lists the known names",
                    run->files->len > 0 ? g_array_index(run->files, LhGpuTraceFile, 0).path
                                        : "trace");
        return false;
    }
    g_array_sort(run->kernels, by_rank_and_start);
    g_array_sort(run->steps, steps_by_rank_and_start);
    return true;
}
