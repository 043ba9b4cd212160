/*
 * See the header. Kernels are known by their names: the patterns are those of public libraries
 * (FlashAttention 2 to 4, cuDNN, Transformer Engine, xFormers, NCCL), and longhaul's own.
 */
#include "import/trace/gpu_trace.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "import/trace/kineto.h"
#include "import/trace/nsys.h"

#include <string.h>

const char *const lh_gpu_trace_class_names[] = {
    "attention forward",
    "attention backward",
    "helper of attention",
    "merge",
    "communication",
    "other",
    NULL,
};

G_STATIC_ASSERT(G_N_ELEMENTS(lh_gpu_trace_class_names) == LH_GPU_TRACE_CLASSES + 1);

/* A name has all of `words`, in this order. */
typedef struct {
    LhGpuTraceClass class;
    const char *words[2];
} Pattern;

/* The first that fits counts: helpers have parts of the names of those that they help. */
static const Pattern patterns[] = {
    { LH_GPU_TRACE_HELPER, { "flash_bwd_dot_do_o", NULL } },
    { LH_GPU_TRACE_HELPER, { "flash_bwd_convert_d", NULL } },
    { LH_GPU_TRACE_HELPER, { "flash_bwd_clear_dkvaccum", NULL } },
    { LH_GPU_TRACE_HELPER, { "FlashAttnBwdPreprocess", NULL } },
    { LH_GPU_TRACE_HELPER, { "FlashAttnBwdPostprocess", NULL } },
    { LH_GPU_TRACE_HELPER, { "FlashAttentionBackwardPreprocess", NULL } },
    { LH_GPU_TRACE_HELPER, { "FlashAttentionBackwardPostprocess", NULL } },
    { LH_GPU_TRACE_HELPER, { "splitkv_combine_kernel", NULL } },
    { LH_GPU_TRACE_HELPER, { "FlashAttnFwdCombine", NULL } },
    { LH_GPU_TRACE_HELPER, { "FlashAttentionForwardCombine", NULL } },
    { LH_GPU_TRACE_ATTEND, { "flash_fwd_kernel", NULL } },
    { LH_GPU_TRACE_ATTEND, { "flash_fwd_splitkv_kernel", NULL } },
    { LH_GPU_TRACE_ATTEND, { "FlashAttnFwdSm", NULL } },
    { LH_GPU_TRACE_ATTEND, { "FlashAttentionForwardSm", NULL } },
    { LH_GPU_TRACE_ATTEND, { "sdpa_sm", "_flash_fprop" } },
    { LH_GPU_TRACE_ATTEND, { "fmha_cutlassF_", NULL } },
    { LH_GPU_TRACE_ATTEND_GRAD, { "flash_bwd_dq_dk_dv_loop_", NULL } },
    { LH_GPU_TRACE_ATTEND_GRAD, { "FlashAttnBwdSm", NULL } },
    { LH_GPU_TRACE_ATTEND_GRAD, { "FlashAttentionBackwardSm", NULL } },
    { LH_GPU_TRACE_ATTEND_GRAD, { "sdpa_sm", "_flash_bprop" } },
    { LH_GPU_TRACE_ATTEND_GRAD, { "fmha_cutlassB_", NULL } },
    { LH_GPU_TRACE_MERGE, { "thd_lse_kernel", NULL } },
    { LH_GPU_TRACE_MERGE, { "thd_out_correction_kernel", NULL } },
    { LH_GPU_TRACE_MERGE, { "thd_grad_correction_kernel", NULL } },
    { LH_GPU_TRACE_COMM, { "ncclDevKernel_", NULL } },
    { LH_GPU_TRACE_COMM, { "ncclSymkDevKernel_", NULL } },
    { LH_GPU_TRACE_COMM, { "ncclKernel_", NULL } },
};

/* What is moved: of NCCL's kernels behind "Kernel_", and of what PyTorch calls collectives. */
static const struct {
    const char *prefix; /* lower case, without underscores and dashes */
    uint8_t transfer;
} transfer_prefixes[] = {
    { "allgather", LH_COLL_ALL_GATHER },        { "reducescatter", LH_COLL_REDUCE_SCATTER },
    { "allreduce", LH_COLL_ALL_REDUCE },        { "alltoall", LH_COLL_ALL_TO_ALL },
    { "broadcast", LH_COLL_BROADCAST },         { "sendrecv", LH_GPU_TRACE_MESSAGES },
    { "exchange", LH_GPU_TRACE_MESSAGES },      { "send", LH_GPU_TRACE_MESSAGES },
    { "receive", LH_GPU_TRACE_MESSAGES },       { "recv", LH_GPU_TRACE_MESSAGES },
    { "ncclcoalesced", LH_GPU_TRACE_MESSAGES }, { "coalesced", LH_GPU_TRACE_MESSAGES },
};

uint8_t
lh_gpu_trace_transfer(const char *name)
{
    char plain[32];
    gsize n = 0;

    for (; *name != '\0' && n + 1 < sizeof(plain); name++) {
        if (g_ascii_isalpha(*name))
            plain[n++] = g_ascii_tolower(*name);
    }
    plain[n] = '\0';
    for (guint i = 0; i < G_N_ELEMENTS(transfer_prefixes); i++) {
        if (g_str_has_prefix(plain, transfer_prefixes[i].prefix))
            return transfer_prefixes[i].transfer;
    }
    return LH_GPU_TRACE_UNKNOWN;
}

static bool
fits(const Pattern *pattern, const char *name)
{
    const char *at = name;

    for (guint i = 0; i < G_N_ELEMENTS(pattern->words) && pattern->words[i] != NULL; i++) {
        at = strstr(at, pattern->words[i]);
        if (at == NULL)
            return false;
        at += strlen(pattern->words[i]);
    }
    return true;
}

/* longhaul's own kernels. */
static LhGpuTraceClass
own_class(const char *name)
{
    const LhKernelId id = lh_kernel_find(name);

    if (id == LH_KERNELS_COUNT)
        return LH_GPU_TRACE_OTHER;
    return lh_kernels[id]->effect == LH_EFFECT_ATTEND        ? LH_GPU_TRACE_ATTEND
           : lh_kernels[id]->effect == LH_EFFECT_ATTEND_GRAD ? LH_GPU_TRACE_ATTEND_GRAD
                                                             : LH_GPU_TRACE_OTHER;
}

LhGpuTraceClass
lh_gpu_trace_class(const char *name, uint8_t *transfer)
{
    const char *kernel;

    *transfer = LH_GPU_TRACE_UNKNOWN;
    for (guint i = 0; i < G_N_ELEMENTS(patterns); i++) {
        if (!fits(&patterns[i], name))
            continue;
        if (patterns[i].class == LH_GPU_TRACE_COMM) {
            kernel = strstr(name, "Kernel_");
            *transfer = lh_gpu_trace_transfer(kernel + strlen("Kernel_"));
        }
        return patterns[i].class;
    }
    return own_class(name);
}

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

bool
lh_nsys_is(const char *path)
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
    return lh_nsys_is(path) ? lh_nsys_load(run, path, error) : lh_kineto_load(run, path, error);
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
                        "%s: error: a trace of rank %u, as %s is; allowed: one file for each rank",
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
                    "%s: error: no attention kernel and no communication was found among its "
                    "events; docs/traces.md lists the names that are known",
                    run->files->len > 0 ? g_array_index(run->files, LhGpuTraceFile, 0).path
                                        : "trace");
        return false;
    }
    g_array_sort(run->kernels, by_rank_and_start);
    g_array_sort(run->steps, steps_by_rank_and_start);
    return true;
}
