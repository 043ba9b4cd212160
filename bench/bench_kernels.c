/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Throughput of the CPU backend's kernels on one core.
 *
 *   bench_kernels [--level NAME] [--rows N] [--head-dim D] [--reference]
 *
 * Prints for each kernel with matrix products its flops (by the kernel table) per CPU second, the
 * best of several calls, and their share of the peak. The peak is that of a loop of independent
 * multiply-adds in registers, timed next to every call, since other load on a shared machine
 * affects both. --reference also times the references and prints the ratio. Elementwise kernels are
 * measured by memory traffic.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CALLS 5
#define PEAK_ROUNDS 2000000
#define MEMORY_BYTES (UINT64_C(64) << 20) /* larger than a core's caches */

static char *level_name;
static int rows = 2048, head_dim = 128;
static gboolean with_reference;

static const GOptionEntry options[] = {
    { "level", 0, 0, G_OPTION_ARG_STRING, &level_name, "plain, avx2 or avx512", "NAME" },
    { "rows", 0, 0, G_OPTION_ARG_INT, &rows, "queries and keys of a call (2048)", "N" },
    { "head-dim", 0, 0, G_OPTION_ARG_INT, &head_dim, "head dimension (128)", "D" },
    { "reference", 0, 0, G_OPTION_ARG_NONE, &with_reference, "time the references as well", NULL },
    { .long_name = NULL },
};

static const struct {
    const char *kernel;
    LhMaskKind mask;
    enum lh_storage storage;
} cases[] = {
    { "attention_fwd", LH_MASK_FULL, LH_STORAGE_FP32 },
    { "attention_fwd", LH_MASK_FULL, LH_STORAGE_BF16 },
    { "attention_fwd", LH_MASK_FULL, LH_STORAGE_FP16 },
    { "attention_fwd", LH_MASK_CAUSAL, LH_STORAGE_FP32 },
    { "attention_block", LH_MASK_FULL, LH_STORAGE_BF16 },
    { "attention", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "attention", LH_MASK_POSITIONS, LH_STORAGE_BF16 },
    { "attention_bwd", LH_MASK_FULL, LH_STORAGE_FP32 },
    { "attention_bwd", LH_MASK_FULL, LH_STORAGE_BF16 },
    { "attention_bwd_o", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "attention_bwd_o", LH_MASK_POSITIONS, LH_STORAGE_BF16 },
    { "linear_intra", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "linear_intra_bwd", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "linear_inter", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "linear_inter_bwd", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "linear_state", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "linear_state_bwd", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "linear_dstate", LH_MASK_CAUSAL, LH_STORAGE_BF16 },
    { "merge", LH_MASK_EMPTY, LH_STORAGE_BF16 },
    { "merge_lse", LH_MASK_EMPTY, LH_STORAGE_BF16 },
    { "normalise", LH_MASK_EMPTY, LH_STORAGE_BF16 },
    { "delta", LH_MASK_EMPTY, LH_STORAGE_BF16 },
    { "add", LH_MASK_EMPTY, LH_STORAGE_BF16 },
    { "add_to_fp32", LH_MASK_EMPTY, LH_STORAGE_BF16 },
    { "copy", LH_MASK_EMPTY, LH_STORAGE_BF16 },
};

/* The same pairs as LH_MASK_CAUSAL. */
static const LhMaskRule by_position = { .causal = true };

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Multiply-adds per second of independent chains in registers, in GFLOP/s. */
static double
peak(void)
{
    float result = 0.5F;
    const double start = cpu_seconds();
    const uint64_t flops = lh_cpu()->multiply_adds(PEAK_ROUNDS, &result);
    const double seconds = cpu_seconds() - start;

    g_assert(!isnan(result));
    return (double)flops / seconds * 1e-9;
}

static bool
is_fp32(const LhOperand *o, enum lh_storage storage)
{
    return o->element == LH_ELEMENT_FP32 || o->element == LH_ELEMENT_EITHER ||
           storage == LH_STORAGE_FP32;
}

/* An operand of the largest kind; small numbers, which are valid for every kind. */
static LhView
operand(const LhKernelArgs *a, const LhOperand *o, enum lh_storage storage)
{
    const uint64_t q = (uint64_t)a->batch * a->nq * a->heads * (a->head_dim + 2);
    const uint64_t kv = 2 * (uint64_t)a->batch * a->nk * a->groups * a->head_dim;
    const uint64_t state = (uint64_t)a->batch * a->heads * a->head_dim * a->head_dim;
    const uint64_t count = MAX(q, MAX(kv, state));
    LhView view = { .parts = 1 };

    view.storage = is_fp32(o, storage) ? LH_STORAGE_FP32 : storage;
    view.part_bytes = count * sizeof(float);
    view.data = g_aligned_alloc(count, sizeof(float), LH_SCRATCH_ALIGN);
    for (uint64_t i = 0; i < count; i++)
        ((float *)(void *)view.data)[i] = 1;
    if (o->kind == LH_TENSOR_LSE) /* of this many keys with logits near 0 */
        for (uint64_t i = 0; i < count; i++)
            ((float *)(void *)view.data)[i] = logf((float)a->nk);
    for (uint64_t i = 0; i < count && !(o->kind == LH_TENSOR_LSE || o->kind == LH_TENSOR_ACC); i++)
        lh_element_put(view.data, view.storage, i, 0.1 * sin((double)i));
    return view;
}

/* The least time of several calls, and the highest peak measured between them. */
static double
time_calls(const LhCall *call, LhKernelRun version, unsigned calls, double *peak_gflops)
{
    double best = INFINITY;

    for (unsigned i = 0; i < calls; i++) {
        double start;

        *peak_gflops = fmax(*peak_gflops, peak());
        start = cpu_seconds();
        if (version(call) != LH_STATUS_OK)
            return NAN;
        best = fmin(best, cpu_seconds() - start);
    }
    return best;
}

static void
print_case(unsigned index, LhKernelId id, const LhCall *call)
{
    const char *const masks[] = { "-", "full", "causal", "positions" };
    const char *const storages[] = { "fp32", "bf16", "fp16", "fp64" };
    const LhKernel *kernel = lh_kernels[id];
    const LhKernelArgs *a = call->args;
    double peak_gflops = 0, ignored = 0;
    const double seconds = time_calls(call, lh_cpu_kernels[id]->fast, CALLS, &peak_gflops);
    const double gflops = (double)kernel->flops(a) / seconds * 1e-9;
    const uint32_t element = cases[index].storage == LH_STORAGE_FP32 ? 4 : 2;

    printf("%-18s %-9s %-5s %10.3f ", kernel->name, masks[cases[index].mask],
           storages[cases[index].storage], seconds * 1e3);
    if (cases[index].mask == LH_MASK_EMPTY)
        printf("%9s %8s %6s %8.1f", "-", "-", "-",
               (double)kernel->memory_bytes(a, element) / seconds * 1e-9);
    else
        printf("%9.1f %8.1f %6.1f %8s", gflops, peak_gflops, 100 * gflops / peak_gflops, "-");
    if (with_reference)
        printf(" %9.1f", time_calls(call, lh_cpu_kernels[id]->reference, 1, &ignored) / seconds);
    printf("\n");
    fflush(stdout);
}

static void
run_case(unsigned index)
{
    const bool elementwise = cases[index].mask == LH_MASK_EMPTY;
    const LhKernelId id = lh_kernel_find(cases[index].kernel);
    const LhKernel *kernel = lh_kernels[id];
    const uint64_t n = (uint64_t)rows;
    LhKernelArgs args = { .nq = n,
                          .nk = n,
                          .pairs = cases[index].mask == LH_MASK_FULL ? n * n : n * (n + 1) / 2,
                          .batch = 1,
                          .heads = 1,
                          .groups = 1,
                          .head_dim = (uint32_t)head_dim,
                          .mask = (uint8_t)cases[index].mask,
                          .stride = 1,
                          .rule = &by_position,
                          .decay = g_str_has_prefix(kernel->name, "linear") ? 0.999 : 0 };
    LhCall call = { .args = &args };

    if (elementwise) {
        args.nk = 0;
        args.nq = MEMORY_BYTES / 4 / (uint64_t)head_dim;
    }
    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++)
        call.operands[i] = operand(&args, &kernel->operands[i], cases[index].storage);
    call.scratch = g_aligned_alloc(1, lh_cpu_scratch_bytes(id, &args) + 1, LH_SCRATCH_ALIGN);
    print_case(index, id, &call);
    g_aligned_free(call.scratch);
    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++)
        g_aligned_free(call.operands[i].data);
}

static bool
set_level(void)
{
    for (unsigned i = 0; lh_cpu_levels[i] != NULL; i++) {
        if (strcmp(lh_cpu_levels[i]->name, level_name) == 0)
            return lh_cpu_set(lh_cpu_levels[i]);
    }
    return false;
}

int
main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || rows < 1 || head_dim < 1) {
        fprintf(stderr, "%s\n", error != NULL ? error->message : "sizes must be positive");
        return 2;
    }
    if (level_name != NULL && !set_level()) {
        fprintf(stderr, "unknown level \"%s\", or not supported by this CPU\n", level_name);
        return 2;
    }
    printf("# one core, level %s, %d rows, head dimension %d; GFLOP/s and GB/s of CPU time\n",
           lh_cpu()->name, rows, head_dim);
    printf("%-18s %-9s %-5s %10s %9s %8s %6s %8s%s\n", "kernel", "mask", "type", "ms", "GFLOP/s",
           "peak", "%", "GB/s", with_reference ? " reference" : "");
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++)
        run_case(i);
    return 0;
}
