/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels are recognised by their names, with the patterns of public libraries (FlashAttention 2 to
 * 4, cuDNN, Transformer Engine, xFormers, NCCL) and longhaul's own names.
 */
#include "import/trace/gpu_kernel_names.h"

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

/* Matches a name that contains all of `words`, in this order. */
typedef struct {
    LhGpuTraceClass class;
    const char *words[2];
} Pattern;

/* The first match counts: names of helpers contain parts of the names of other kernels. */
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

/* Transfers by the part of an NCCL kernel's name after "Kernel_", and by PyTorch's names of
 * collectives. */
static const struct {
    const char *prefix; /* lower case, letters only */
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

/* Class of longhaul's own kernels. */
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
