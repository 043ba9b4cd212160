/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the layer outside attention on data: forward versions against plain loops, backward
 * ones against finite differences, and known properties of sums over ranks and calls. All in fp64
 * storage, with separated parts.
 */
#include "kernel_runs.h"
#include "run_tests.h"
#include "share.h"

#define GAP 3U /* elements between parts that no kernel may touch */
#define STEP 1e-5

/* An operand in fp64, or tokens; elements are indexed across all parts. */
typedef struct {
    char name[16];
    double *data;
    uint64_t count;
    uint32_t parts;
    bool is_tokens;
} Tensor;

#define TENSORS_MAX 10

/* Operands by name: those of a forward kernel and their gradients. */
typedef struct {
    LhKernelArgs args;
    Tensor tensors[TENSORS_MAX];
    unsigned count;
} World;

/* Elements of a part; the last parts may have fewer. */
static uint64_t
per_part(const Tensor *t)
{
    return (t->count + t->parts - 1) / t->parts;
}

static uint64_t
spread(const Tensor *t, uint64_t i)
{
    const uint64_t per = per_part(t);

    return i / per * (per + GAP) + i % per;
}

static double *
at(const Tensor *t, uint64_t i)
{
    ck_assert_uint_lt(i, t->count);
    return &t->data[spread(t, i)];
}

static uint64_t
memory_of(const Tensor *t)
{
    return t->parts * (per_part(t) + GAP);
}

static Tensor *
find(World *w, const char *name)
{
    for (unsigned i = 0; i < w->count; i++) {
        if (strcmp(w->tensors[i].name, name) == 0)
            return &w->tensors[i];
    }
    return NULL;
}

static double
random_element(const World *w, const Tensor *t)
{
    if (!t->is_tokens)
        return normal();
    return floor(uniform() * (double)w->args.rows.vocabulary);
}

/* Tokens are also kept as doubles and converted for each call. */
static Tensor *
add(World *w, const char *name, LhTensorKind kind, uint64_t count, uint32_t parts)
{
    Tensor *t = &w->tensors[w->count++];

    ck_assert_uint_le(w->count, TENSORS_MAX);
    *t = (Tensor){ .count = count, .parts = parts, .is_tokens = kind == LH_TENSOR_TOKENS };
    g_strlcpy(t->name, name, sizeof(t->name));
    t->data = g_new(double, memory_of(t));
    for (uint64_t i = 0; i < memory_of(t); i++)
        t->data[i] = (double)NAN;
    for (uint64_t i = 0; i < count; i++)
        *at(t, i) = random_element(w, t);
    return t;
}

static void
clear(World *w)
{
    for (unsigned i = 0; i < w->count; i++)
        g_free(w->tensors[i].data);
}

static LhView
view(const Tensor *t, uint32_t *tokens)
{
    const uint64_t per = per_part(t);

    for (uint64_t i = 0; t->is_tokens && i < t->count; i++)
        tokens[spread(t, i)] = (uint32_t)*at(t, i);
    if (t->is_tokens)
        return (LhView){ .data = (unsigned char *)tokens,
                         .parts = t->parts,
                         .part_bytes = (per + GAP) * sizeof(uint32_t),
                         .storage = LH_STORAGE_FP32,
                         .held_bytes = per * sizeof(uint32_t) };
    return (LhView){ .data = (unsigned char *)t->data,
                     .parts = t->parts,
                     .part_bytes = (per + GAP) * sizeof(double),
                     .storage = LH_STORAGE_FP64,
                     .held_bytes = per * sizeof(double) };
}

/* Asserts that nothing is written between parts or behind the last element of a partial one. */
static void
check_gaps(const Tensor *t)
{
    const uint64_t stride = per_part(t) + GAP;

    for (uint64_t i = 0; i < memory_of(t); i++) {
        const bool gap = i % stride >= per_part(t);

        ck_assert(isnan(t->data[i]) || (!gap && i / stride * per_part(t) + i % stride < t->count));
    }
}

/* Calls a kernel with the tensors its operands name. */
static void
run(World *w, const char *name, Version version)
{
    const LhKernelId id = lh_kernel_find(name);
    LhCall call = { .args = &w->args };
    uint32_t *tokens = NULL;

    ck_assert_int_ne(id, LH_KERNELS_COUNT);
    for (unsigned i = 0; lh_kernels[id]->operands[i].access != LH_OPERAND_END; i++) {
        const Tensor *t = find(w, lh_kernels[id]->operands[i].name);

        ck_assert_msg(t != NULL, "%s has no %s", name, lh_kernels[id]->operands[i].name);
        if (t->is_tokens)
            tokens = g_new(uint32_t, memory_of(t));
        call.operands[i] = view(t, tokens);
    }
    run_kernel(id, version, &call);
    g_free(tokens);
    for (unsigned i = 0; i < w->count; i++)
        check_gaps(&w->tensors[i]);
}

/* A world with the operands of @kernel, in @parts parts each; 0 means 1. */
static void
open_world(World *w, const char *kernel, const LhKernelArgs *args, const uint32_t *parts)
{
    const LhKernel *k = lh_kernels[lh_kernel_find(kernel)];

    *w = (World){ .args = *args };
    for (unsigned i = 0; k->operands[i].access != LH_OPERAND_END; i++)
        add(w, k->operands[i].name, k->operands[i].kind, k->operand_elements(args, i),
            MAX(parts[i], 1));
}

static void
check_close(double got, double want, double tolerance, const char *what, uint64_t i)
{
    ck_assert_msg(fabs(got - want) <= tolerance * (1 + fabs(want)), "%s %lu: %.15g, expected %.15g",
                  what, (gulong)i, got, want);
}

/* ---- gradients ---- */

typedef struct {
    const char *forward, *backward[2];
    LhKernelArgs args;
    uint32_t parts[LH_KERNEL_OPERANDS_MAX]; /* per operand of the forward kernel */
} Gradient;

static const Gradient gradients[] = {
    { "product", { "product_dgrad", "product_wgrad" }, { .product = { 6, 3, 4 } }, { 2, 4, 3 } },
    /* Weights cut within rows. */
    { "product", { "product_dgrad", "product_wgrad" }, { .product = { 4, 3, 4 } }, { 1, 6, 1 } },
    { "out_product",
      { "out_product_dgrad", "out_product_wgrad" },
      { .product = { 12, 3, 8, 1, { 2, 3 } } },
      { 2, 4, 3 } },
    { "out_product",
      { "out_product_dgrad", "out_product_wgrad" },
      { .product = { 8, 3, 8, 1, { 2, 1 } } },
      { 8, 1, 2 } },
    { "embed", { "embed_bwd" }, { .rows = { 9, 4, 12, 3, 6 } }, { 3, 2, 1 } },
    { "rms_norm", { "rms_norm_bwd" }, { .rows = { 4, 6, .epsilon = 1e-2 } }, { 2, 3, 4 } },
    { "layer_norm", { "layer_norm_bwd" }, { .rows = { 4, 6, .epsilon = 1e-2 } }, { 1, 4, 2 } },
    { "rms_norm", { "rms_norm_dgrad" }, { .rows = { 4, 6, .epsilon = 1e-2 } }, { 2, 3, 4 } },
    { "layer_norm", { "layer_norm_dgrad" }, { .rows = { 4, 6, .epsilon = 1e-2 } }, { 1, 4, 2 } },
    /* Parts of a weight, rounded up: 5 elements in 3 parts of 2. */
    { "product", { "product_dgrad", "product_wgrad" }, { .product = { 3, 1, 5 } }, { 3, 3, 1 } },
    { "rms_norm", { "rms_norm_bwd" }, { .rows = { 2, 5, .epsilon = 1e-2 } }, { 2, 3, 1 } },
    { "embed", { "embed_bwd" }, { .rows = { 6, 5, 12, 4, 4 } }, { 3, 3, 1 } },
    { "rotary_q",
      { "rotary_q_bwd" },
      { .to_heads = { 6, 5, 2, 100, { 2, 3 }, 4, 2, 4 } },
      { 3, 2 } },
    { "rotary_q", { "rotary_q_bwd" }, { .to_heads = { 2, 0, 1, 0, { 1, 1 }, 2, 2, 3 } }, { 1, 1 } },
    { "rotary_kv",
      { "rotary_kv_bwd" },
      { .to_heads = { 6, 5, 2, 100, { 2, 3 }, 4, 2, 4 } },
      { 3, 2 } },
    { "rotary_kv",
      { "rotary_kv_bwd" },
      { .to_heads = { 2, 0, 1, 0, { 1, 1 }, 2, 2, 3 } },
      { 1, 1 } },
    { "silu_q", { "silu_q_bwd" }, { .to_heads = { 6, 5, 2, 100, { 2, 3 }, 4, 2, 4 } }, { 3, 4 } },
    { "silu_q", { "silu_q_bwd" }, { .to_heads = { 2, 0, 1, 0, { 1, 1 }, 2, 2, 3 } }, { 1, 1 } },
    { "silu_kv", { "silu_kv_bwd" }, { .to_heads = { 6, 5, 2, 100, { 2, 3 }, 4, 2, 4 } }, { 3, 1 } },
    { "silu_kv", { "silu_kv_bwd" }, { .to_heads = { 2, 0, 1, 0, { 1, 1 }, 2, 2, 3 } }, { 1, 2 } },
    { "from_heads",
      { "from_heads_bwd" },
      { .to_heads = { 6, 0, 1, 0, { 2, 3 }, 4, 2, 4 } },
      { 2, 3 } },
    { "glu", { "glu_bwd" }, { .rows = { 3, 4 } }, { 3, 1 } },
    { "gelu", { "gelu_bwd" }, { .rows = { 3, 4 } }, { 3, 2 } },
    { "gate", { "gate_bwd" }, { .rows = { 3, 4 } }, { 3, 2, 1 } },
};

static bool
is_output(const LhKernel *kernel, unsigned operand)
{
    return kernel->operands[operand].access == LH_OPERAND_WRITE;
}

/* The sum of all outputs, weighted by the tensors that are their gradients. */
static double
weighed_outputs(World *w, const char *forward)
{
    const LhKernel *kernel = lh_kernels[lh_kernel_find(forward)];
    double sum = 0;

    run(w, forward, REFERENCE);
    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
        g_autofree char *name = g_strconcat("d", kernel->operands[i].name, NULL);
        const Tensor *output = find(w, kernel->operands[i].name), *weights = find(w, name);

        for (uint64_t k = 0; is_output(kernel, i) && k < output->count; k++)
            sum += *at(output, k) * *at(weights, k);
    }
    return sum;
}

/* Derivative of the weighted outputs by element @i of @input. */
static double
finite_difference(World *w, const char *forward, const Tensor *input, uint64_t i)
{
    const double x = *at(input, i);
    double above, below;

    *at(input, i) = x + STEP;
    above = weighed_outputs(w, forward);
    *at(input, i) = x - STEP;
    below = weighed_outputs(w, forward);
    *at(input, i) = x;
    return (above - below) / (2 * STEP);
}

/* Content of gradient @name before the calls: the beginning of a sum, or poison. */
static double
start_of(const Gradient *g, const LhKernelArgs *args, const char *name)
{
    for (unsigned b = 0; b < 2 && g->backward[b] != NULL; b++) {
        const LhKernel *kernel = lh_kernels[lh_kernel_find(g->backward[b])];

        for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
            if (strcmp(kernel->operands[i].name, name) == 0)
                return lh_operand_is_overwritten(kernel, args, i) ? (double)NAN : 0.5;
        }
    }
    return (double)NAN;
}

/* Creates gradients of all operands of @w, random ones for outputs. */
static void
add_gradients(World *w, const Gradient *g)
{
    const LhKernel *kernel = lh_kernels[lh_kernel_find(g->forward)];

    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
        g_autofree char *name = g_strconcat("d", kernel->operands[i].name, NULL);
        Tensor *t = find(w, kernel->operands[i].name);

        t = add(w, name, kernel->operands[i].kind, t->count, t->parts);
        for (uint64_t k = 0; k < t->count && !is_output(kernel, i); k++)
            *at(t, k) = start_of(g, &w->args, name);
    }
}

/* Whether a backward kernel writes gradient @name: those of frozen weights have none. */
static bool
is_written(const Gradient *g, const char *name)
{
    for (unsigned b = 0; b < 2 && g->backward[b] != NULL; b++) {
        const LhKernel *kernel = lh_kernels[lh_kernel_find(g->backward[b])];

        for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
            if (strcmp(kernel->operands[i].name, name) == 0)
                return true;
        }
    }
    return false;
}

static void
check_gradient(const Gradient *g, bool first, bool adds)
{
    const LhKernel *kernel = lh_kernels[lh_kernel_find(g->forward)];
    World w;

    open_world(&w, g->forward, &g->args, g->parts);
    w.args.first = first;
    if (kernel->args == LH_ARGS_ROWS)
        w.args.rows.adds = adds;
    add_gradients(&w, g);
    for (unsigned b = 0; b < 2 && g->backward[b] != NULL; b++)
        run(&w, g->backward[b], REFERENCE);
    for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
        g_autofree char *name = g_strconcat("d", kernel->operands[i].name, NULL);
        const Tensor *input = find(&w, kernel->operands[i].name), *got = find(&w, name);
        const double start = start_of(g, &w.args, name);

        if (is_output(kernel, i) || input->is_tokens || !is_written(g, name))
            continue;
        for (uint64_t k = 0; k < input->count; k++)
            check_close(*at(got, k) - (isnan(start) ? 0 : start),
                        finite_difference(&w, g->forward, input, k), 1e-7, name, k);
    }
    clear(&w);
}

START_TEST(layer_gradients_are_finite_differences)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(gradients); i++) {
        for (unsigned how = 0; how < 4; how++) {
            if (test_takes(4 * i + how))
                check_gradient(&gradients[i], how % 2 != 0, how / 2 != 0);
        }
    }
}
END_TEST

/* Only `adds` decides whether dx is accumulated, and only `first` whether dw is initialised. */
static void
check_sums_of_norm(const char *kernel, bool adds, bool first)
{
    enum { ROWS = 3, WIDTH = 4 };
    const LhKernelArgs plain = { .rows = { ROWS, WIDTH, .epsilon = 1e-3 }, .first = true };
    const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { 0 };
    double dx[ROWS * WIDTH], dw[2 * WIDTH];
    World w;

    open_world(&w, kernel, &plain, parts);
    for (unsigned i = 0; i < ROWS * WIDTH; i++)
        *at(find(&w, "dx"), i) = (double)NAN;
    for (unsigned i = 0; i < find(&w, "dw")->count; i++)
        *at(find(&w, "dw"), i) = (double)NAN;
    run(&w, kernel, REFERENCE);
    for (unsigned i = 0; i < ROWS * WIDTH; i++)
        dx[i] = *at(find(&w, "dx"), i);
    for (unsigned i = 0; i < find(&w, "dw")->count; i++)
        dw[i] = *at(find(&w, "dw"), i);
    w.args.rows.adds = adds;
    w.args.first = first;
    run(&w, kernel, REFERENCE);
    for (unsigned i = 0; i < ROWS * WIDTH; i++)
        check_close(*at(find(&w, "dx"), i), (adds ? 2 : 1) * dx[i], 1e-14, "dx", i);
    for (unsigned i = 0; i < find(&w, "dw")->count; i++)
        check_close(*at(find(&w, "dw"), i), (first ? 1 : 2) * dw[i], 1e-14, "dw", i);
    clear(&w);
}

START_TEST(layer_norms_add_to_dx_and_dw_apart)
{
    const char *const names[] = { "rms_norm_bwd", "layer_norm_bwd" };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        const LhKernel *kernel = lh_kernels[lh_kernel_find(names[i])];

        for (unsigned how = 0; how < 4; how++) {
            const bool adds = how % 2 != 0, first = how / 2 != 0;
            const LhKernelArgs args = { .rows = { 3, 4, .adds = adds }, .first = first };

            check_sums_of_norm(names[i], adds, first);
            ck_assert(lh_operand_is_overwritten(kernel, &args, 3) == !adds);
            ck_assert(lh_operand_is_overwritten(kernel, &args, 4) == first);
        }
    }
}
END_TEST

/* Two products with a common x accumulate its gradient; the first one initialises it. */
START_TEST(layer_products_add_up_in_dx)
{
    const char *const names[] = { "product_dgrad", "out_product_dgrad" };
    const char *const sums[] = { "dx", "do" };
    enum { M = 4, K = 6 };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        const LhKernelArgs args = { .product = { M, 3, K, 1, { 1, 2 } }, .first = true };
        const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { 2, 1, 2 };
        const LhKernel *kernel = lh_kernels[lh_kernel_find(names[i])];
        double once[M * K];
        World w;

        for (unsigned version = REFERENCE; version <= FAST; version++) {
            open_world(&w, names[i], &args, parts);
            for (unsigned k = 0; k < M * K; k++)
                *at(find(&w, sums[i]), k) = (double)NAN;
            run(&w, names[i], (Version)version);
            for (unsigned k = 0; k < M * K; k++)
                once[k] = *at(find(&w, sums[i]), k);
            ck_assert(lh_operand_is_overwritten(kernel, &w.args, 2));
            w.args.first = false;
            ck_assert(!lh_operand_is_overwritten(kernel, &w.args, 2));
            run(&w, names[i], (Version)version);
            for (unsigned k = 0; k < M * K; k++)
                check_close(*at(find(&w, sums[i]), k), 2 * once[k], 1e-6, sums[i], k);
            clear(&w);
        }
    }
}
END_TEST

/* ---- forward versions against plain loops ---- */

START_TEST(layer_norms_are_their_formulas)
{
    const LhKernelArgs args = { .rows = { 5, 7, .epsilon = 0.25 } };
    const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { 5, 7, 5 };
    World rms, layer;

    open_world(&rms, "rms_norm", &args, parts);
    open_world(&layer, "layer_norm", &args, parts);
    run(&rms, "rms_norm", REFERENCE);
    run(&layer, "layer_norm", REFERENCE);
    for (unsigned row = 0; row < 5; row++) {
        double squares = 0, mean = 0, variance = 0;

        for (unsigned i = 0; i < 7; i++) {
            const double x = *at(find(&rms, "x"), row * 7 + i);

            squares += x * x / 7;
            mean += *at(find(&layer, "x"), row * 7 + i) / 7;
        }
        for (unsigned i = 0; i < 7; i++)
            variance += pow(*at(find(&layer, "x"), row * 7 + i) - mean, 2) / 7;
        for (unsigned i = 0; i < 7; i++) {
            const unsigned k = row * 7 + i;

            check_close(*at(find(&rms, "y"), k),
                        *at(find(&rms, "x"), k) / sqrt(squares + 0.25) * *at(find(&rms, "w"), i),
                        1e-13, "rms_norm", k);
            check_close(*at(find(&layer, "y"), k),
                        (*at(find(&layer, "x"), k) - mean) / sqrt(variance + 0.25) *
                                *at(find(&layer, "w"), i) +
                            *at(find(&layer, "w"), 7 + i),
                        1e-13, "layer_norm", k);
        }
    }
    clear(&rms);
    clear(&layer);
}
END_TEST

START_TEST(layer_activations_are_their_formulas)
{
    const LhKernelArgs args = { .rows = { 3, 700 } };
    const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { 3, 1, 3 };
    World glu, gelu, gate;

    open_world(&glu, "glu", &args, parts);
    open_world(&gelu, "gelu", &args, parts);
    open_world(&gate, "gate", &args, parts);
    run(&glu, "glu", REFERENCE);
    run(&gelu, "gelu", REFERENCE);
    run(&gate, "gate", REFERENCE);
    for (unsigned i = 0; i < 3 * 700; i++) {
        const double g = *at(find(&glu, "gu"), i / 700 * 1400 + i % 700);
        const double up = *at(find(&glu, "gu"), i / 700 * 1400 + 700 + i % 700);
        const double x = *at(find(&gelu, "x"), i);

        check_close(*at(find(&glu, "p"), i), g / (1 + exp(-g)) * up, 1e-13, "glu", i);
        check_close(*at(find(&gelu, "y"), i),
                    x / 2 * (1 + tanh(sqrt(2 / G_PI) * (x + 0.044715 * pow(x, 3)))), 1e-13, "gelu",
                    i);
        /* The tanh approximation is close to the normal distribution's. */
        ck_assert_double_eq_tol(*at(find(&gelu, "y"), i), x / 2 * erfc(-x / sqrt(2)), 1e-3);
        check_close(*at(find(&gate, "z"), i),
                    *at(find(&gate, "x"), i) / (1 + exp(-*at(find(&gate, "g"), i))), 1e-13, "gate",
                    i);
    }
    clear(&glu);
    clear(&gelu);
    clear(&gate);
}
END_TEST

/* Vocabulary-parallel tables of two ranks, the second's padded by a row: each rank gives zeros for
 * the other's tokens, and the sum is the embedding. Padding gets no gradient. */
START_TEST(layer_embeddings_are_sums_over_ranks)
{
    enum { ROWS = 40, WIDTH = 6, HALF = 5, VOCABULARY = 9 };
    double sums[ROWS * WIDTH] = { 0 };
    double tokens[ROWS];
    double table[2 * HALF][WIDTH];

    for (unsigned i = 0; i < ROWS; i++)
        tokens[i] = i % (VOCABULARY + 3); /* three beyond the vocabulary */
    for (unsigned rank = 0; rank < 2; rank++) {
        const LhKernelArgs args = { .rows = { ROWS, WIDTH, VOCABULARY, rank * HALF, HALF },
                                    .first = true };
        const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { 4, 3, 2 };
        World w;

        open_world(&w, "embed", &args, parts);
        for (unsigned i = 0; i < ROWS; i++)
            *at(find(&w, "tokens"), i) = tokens[i];
        run(&w, "embed", REFERENCE);
        for (unsigned i = 0; i < ROWS * WIDTH; i++)
            sums[i] += *at(find(&w, "y"), i);
        for (unsigned i = 0; i < HALF * WIDTH; i++)
            table[rank * HALF + i / WIDTH][i % WIDTH] = *at(find(&w, "w"), i);
        add(&w, "dy", LH_TENSOR_HIDDEN, ROWS * WIDTH, 2);
        add(&w, "dw", LH_TENSOR_GRADIENT, HALF * WIDTH, 3);
        run(&w, "embed_bwd", REFERENCE);
        for (unsigned i = (VOCABULARY - HALF) * WIDTH; rank == 1 && i < HALF * WIDTH; i++)
            ck_assert(*at(find(&w, "dw"), i) == 0);
        clear(&w);
    }
    for (unsigned i = 0; i < ROWS * WIDTH; i++) {
        const unsigned token = (unsigned)tokens[i / WIDTH];

        ck_assert(sums[i] == (token < VOCABULARY ? table[token][i % WIDTH] : 0));
    }
}
END_TEST

/* ---- layouts ---- */

/* Shape of a tensor by heads: place() gives the index of an element in it. */
typedef struct {
    uint64_t batch, rows, heads, dim, slices;
    unsigned tensors; /* k and v */
} ByHeads;

typedef struct {
    uint64_t s, b, row, head, e;
    unsigned tensor;
} Element;

static uint64_t
place(const ByHeads *t, Element x)
{
    const uint64_t of_slice = MAX(t->heads / t->slices, 1);
    const uint64_t tensor = t->batch * t->rows * of_slice * t->dim;
    const uint64_t part = x.s * t->slices + x.head / of_slice;

    return (part * t->tensors + x.tensor) * tensor +
           ((x.b * t->rows + x.row) * of_slice + x.head % of_slice) * t->dim + x.e;
}

/* Index of element @column of a row in token layout: parts are segments x members, each
 * [batch][rows]. */
static uint64_t
place_outside(const LhHeadsLayout *l, uint64_t rows, uint64_t width, Element x, uint64_t column)
{
    const uint64_t member_rows = rows / l->members, t = x.row / member_rows;

    return (((x.s * l->members + t) * l->batch + x.b) * member_rows + x.row % member_rows) * width +
           column;
}

/* Kernels between rows and tensors by heads: from a row's columns to heads, and the inverse, if it
 * restores the first. */
typedef struct {
    const char *there, *back;
    const char *heads, *back_from, *back_to; /* operands */
    bool of_kv, turns, silu, from_heads;
} Way;

static const Way ways[] = {
    { "rotary_q", "rotary_q_bwd", "q", "dq", "drows", .turns = true },
    { "rotary_kv", "rotary_kv_bwd", "kv", "dkv", "drows", .of_kv = true, .turns = true },
    { "silu_q", NULL, "q", NULL, NULL, .turns = true, .silu = true },
    { "silu_kv", NULL, "kv", NULL, NULL, .of_kv = true, .turns = true, .silu = true },
    { "from_heads", "from_heads_bwd", "o", "drows", "do", .from_heads = true },
};

enum { H = 4, G = 2, D = 4 };

/* Expected result for element x.e of a row's head that starts at @column. */
static double
turned(World *w, const Way *way, Element x, uint64_t width, uint64_t column)
{
    const LhKernelArgs *a = &w->args;
    const LhHeadsLayout *l = &a->to_heads.layout;
    const Tensor *rows = find(w, "rows");
    const uint64_t i = x.e % (D / 2);
    const double position = (double)a->to_heads.start + (double)x.row * (double)a->to_heads.stride;
    const double angle =
        a->to_heads.base != 0 ? position / pow(a->to_heads.base, 2 * (double)i / D) : 0;
    double low = *at(rows, place_outside(l, a->to_heads.rows, width, x, column + i));
    double high = *at(rows, place_outside(l, a->to_heads.rows, width, x, column + i + D / 2));

    if (way->silu) {
        low /= 1 + exp(-low);
        high /= 1 + exp(-high);
    }
    return x.e < D / 2 ? low * cos(angle) - high * sin(angle)
                       : high * cos(angle) + low * sin(angle);
}

/* Asserts that the inverse, applied to a copy of the result, restores the input. */
static void
check_way_back(World *w, const Way *way)
{
    const Tensor *rows = find(w, "rows"), *heads = find(w, way->heads);
    const Tensor *read = way->from_heads ? heads : rows, *written = way->from_heads ? rows : heads;
    Tensor *from, *to;

    from = add(w, way->back_from, LH_TENSOR_HIDDEN, written->count, written->parts);
    to = add(w, way->back_to, LH_TENSOR_HIDDEN, read->count, read->parts);
    for (uint64_t i = 0; i < written->count; i++)
        *at(from, i) = *at(written, i);
    run(w, way->back, REFERENCE);
    for (uint64_t i = 0; i < read->count; i++)
        check_close(*at(to, i), *at(read, i), 1e-13, way->back, i);
}

/* One combination of layouts. */
static void
check_way(const Way *way, LhHeadsLayout layout, uint32_t slices, double base)
{
    const LhKernelArgs args = { .to_heads = { 2 * layout.members, 7, 3, base, layout, H, G, D } };
    const uint64_t rows = args.to_heads.rows, width = (way->of_kv ? 2 * G : H) * D;
    const uint32_t there[LH_KERNEL_OPERANDS_MAX] = { layout.members, slices };
    const uint32_t back[LH_KERNEL_OPERANDS_MAX] = { slices, layout.members };
    const ByHeads shape = { layout.batch, rows, way->of_kv ? G : H, D, slices, way->of_kv ? 2 : 1 };
    World w;

    open_world(&w, way->there, &args, way->from_heads ? back : there);
    run(&w, way->there, REFERENCE);
    for (uint64_t i = 0; i < layout.batch * rows * width; i++) {
        const uint64_t row = i / width, head = i % width / D;
        Element x = { 0,          row / rows,
                      row % rows, head % shape.heads,
                      i % D,      (unsigned)(head / shape.heads) };
        const uint64_t outside = place_outside(&layout, rows, width, x, i % width);
        const double plain = *at(find(&w, "rows"), outside);
        const bool turns = way->turns && x.tensor == 0;

        check_close(*at(find(&w, way->heads), place(&shape, x)),
                    turns ? turned(&w, way, x, width, head * D) : plain, 1e-13, way->there, i);
    }
    if (way->back != NULL)
        check_way_back(&w, way);
    clear(&w);
}

/* Layouts of one or two sequences, cut among one to three members. */
#define LAYOUTS 6U

static LhHeadsLayout
layout_of(unsigned number)
{
    return (LhHeadsLayout){ 1 + number % 2, 1 + number / 2 };
}

START_TEST(layer_heads_know_all_layouts)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        for (unsigned l = 0; l < LAYOUTS; l++) {
            for (uint32_t slices = 1; slices <= (ways[i].of_kv ? G : H); slices *= 2) {
                check_way(&ways[i], layout_of(l), slices, 0);
                check_way(&ways[i], layout_of(l), slices, 50);
            }
        }
    }
}
END_TEST

/* Both versions, since the fast one traverses parts differently. */
static void
check_out_product(LhHeadsLayout layout, uint64_t segments, uint32_t slices, Version version)
{
    enum { N = 3 };
    const uint64_t rows = 2 * layout.members, m = segments * layout.batch * rows;
    const LhKernelArgs args = { .product = { m, N, H * D, 1, layout }, .first = true };
    const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { (uint32_t)segments * slices, 2,
                                                     (uint32_t)segments * layout.members };
    const ByHeads o = { layout.batch, rows, H, D, slices, 1 };
    const double tolerance = version == FAST ? 1e-5 : 1e-13;
    double dw[H * D * N] = { 0 };
    World w;

    open_world(&w, "out_product", &args, parts);
    add(&w, "dy", LH_TENSOR_HIDDEN, m * N, parts[2]);
    add(&w, "do", LH_TENSOR_DO, m * H * D, parts[0]);
    add(&w, "dw", LH_TENSOR_GRADIENT, H * D * N, 1);
    run(&w, "out_product", version);
    run(&w, "out_product_dgrad", version);
    run(&w, "out_product_wgrad", version);
    for (uint64_t row = 0; row < m; row++) {
        Element x = { row / rows / layout.batch, row / rows % layout.batch, row % rows, 0, 0, 0 };
        double y[N] = { 0 };

        for (uint64_t i = 0; i < H * D; i++) {
            double gradient = 0;

            x.head = i / D;
            x.e = i % D;
            for (uint64_t j = 0; j < N; j++) {
                const double dy = *at(find(&w, "dy"), place_outside(&layout, rows, N, x, j));

                y[j] += *at(find(&w, "o"), place(&o, x)) * *at(find(&w, "w"), i * N + j);
                gradient += dy * *at(find(&w, "w"), i * N + j);
                dw[i * N + j] += *at(find(&w, "o"), place(&o, x)) * dy;
            }
            check_close(*at(find(&w, "do"), place(&o, x)), gradient, tolerance, "do", i);
        }
        for (uint64_t j = 0; j < N; j++)
            check_close(*at(find(&w, "y"), place_outside(&layout, rows, N, x, j)), y[j], tolerance,
                        "y", j);
    }
    for (uint64_t i = 0; i < H * D * N; i++)
        check_close(*at(find(&w, "dw"), i), dw[i], tolerance, "dw", i);
    clear(&w);
}

START_TEST(layer_out_products_know_all_layouts)
{
    for (unsigned l = 0; l < LAYOUTS; l++) {
        for (uint64_t segments = 1; segments <= 2; segments++) {
            for (uint32_t slices = 1; slices <= 4; slices *= 2) {
                check_out_product(layout_of(l), segments, slices, REFERENCE);
                check_out_product(layout_of(l), segments, slices, FAST);
            }
        }
    }
}
END_TEST

/* ---- the loss ---- */

enum { LOSS_ROWS = 6, LOSS_COLUMNS = 24 };

/* A vocabulary of the first @vocabulary columns; the rest is padding and holds no numbers. */
typedef struct {
    uint64_t vocabulary;
    double logits[LOSS_ROWS][LOSS_COLUMNS], tokens[LOSS_ROWS];
    double dlogits[LOSS_ROWS][LOSS_COLUMNS], value;
} Loss;

/* Loss on @members ranks with @width columns each; l->value is that of rank @asked. */
static void
run_loss(Loss *l, unsigned members, uint64_t width, unsigned asked, uint64_t tokens)
{
    const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { 2, 3, members, 3, 1 };
    const uint32_t of_stats[LH_KERNEL_OPERANDS_MAX] = { 3, 1, 2 };
    World all[LOSS_COLUMNS];

    for (unsigned rank = 0; rank < members; rank++) {
        const LhKernelArgs args = { .rows = { .rows = LOSS_ROWS,
                                              .width = width,
                                              .vocabulary = l->vocabulary,
                                              .first = rank * width,
                                              .tokens = tokens },
                                    .first = true };
        World stats;

        open_world(&all[rank], "loss", &args, parts);
        open_world(&stats, "loss_stats", &args, of_stats);
        for (unsigned i = 0; i < LOSS_ROWS * width; i++)
            *at(find(&all[rank], "logits"), i) = *at(find(&stats, "logits"), i) =
                l->logits[i / width][rank * width + i % width];
        for (unsigned i = 0; i < LOSS_ROWS; i++)
            *at(find(&all[rank], "tokens"), i) = *at(find(&stats, "tokens"), i) = l->tokens[i];
        run(&stats, "loss_stats", REFERENCE);
        for (unsigned to = 0; to < members; to++) {
            /* Statistics of the previous ranks, whose worlds exist already. */
            for (unsigned i = 0; i < 3 * LOSS_ROWS && to <= rank; i++)
                *at(find(&all[to], "numbers"), rank * 3 * LOSS_ROWS + i) =
                    *at(find(&stats, "numbers"), i);
        }
        for (unsigned from = 0; from < rank; from++) {
            for (unsigned i = 0; i < 3 * LOSS_ROWS; i++)
                *at(find(&all[rank], "numbers"), from * 3 * LOSS_ROWS + i) =
                    *at(find(&all[0], "numbers"), from * 3 * LOSS_ROWS + i);
        }
        clear(&stats);
    }
    for (unsigned rank = 0; rank < members; rank++) {
        run(&all[rank], "loss", REFERENCE);
        for (unsigned i = 0; i < LOSS_ROWS * width; i++)
            l->dlogits[i / width][rank * width + i % width] = *at(find(&all[rank], "dlogits"), i);
        if (rank == asked)
            l->value = *at(find(&all[rank], "value"), 0);
    }
    for (unsigned rank = 0; rank < members; rank++)
        clear(&all[rank]);
}

static double
plain_loss(const Loss *l, unsigned row)
{
    double sum = 0;

    if (l->tokens[row] >= (double)l->vocabulary)
        return 0;
    for (unsigned i = 0; i < l->vocabulary; i++)
        sum += exp(l->logits[row][i]);
    return log(sum) - l->logits[row][(unsigned)l->tokens[row]];
}

static void
draw_loss(Loss *l, uint64_t vocabulary)
{
    l->vocabulary = vocabulary;
    for (unsigned i = 0; i < LOSS_ROWS * LOSS_COLUMNS; i++)
        l->logits[i / LOSS_COLUMNS][i % LOSS_COLUMNS] =
            i % LOSS_COLUMNS < vocabulary ? 3 * normal() : (double)NAN;
    for (unsigned i = 0; i < LOSS_ROWS; i++)
        l->tokens[i] = (double)(i * 5 % vocabulary);
    l->tokens[LOSS_ROWS - 2] = (double)vocabulary - 1;
    l->tokens[LOSS_ROWS - 1] = (double)vocabulary; /* beyond the vocabulary: ignored */
}

/* Derivative of the loss of column @column's row. */
static double
loss_difference(Loss *l, unsigned row, unsigned column)
{
    double *x = &l->logits[row][column];
    const double before = *x;
    double above, below;

    *x = before + STEP;
    above = plain_loss(l, row);
    *x = before - STEP;
    below = plain_loss(l, row);
    *x = before;
    return (above - below) / (2 * STEP);
}

static void
check_loss(Loss *l, unsigned members, uint64_t width)
{
    double want = 0, first;

    for (unsigned row = 0; row < LOSS_ROWS; row++)
        want += plain_loss(l, row) / 20;
    run_loss(l, members, width, 0, 20);
    first = l->value;
    check_close(first, want, 1e-13, "loss", members);
    run_loss(l, members, width, members - 1, 20);
    ck_assert(l->value == first);
    for (unsigned row = 0; row < LOSS_ROWS; row++) {
        for (unsigned i = 0; i < l->vocabulary; i++)
            check_close(l->dlogits[row][i], loss_difference(l, row, i) / 20, 1e-8, "dlogits", i);
        for (uint64_t i = l->vocabulary; i < members * width; i++)
            ck_assert(l->dlogits[row][i] == 0);
    }
}

START_TEST(layer_loss_is_cross_entropy)
{
    const unsigned members[] = { 1, 2, 3, 4, 12 };
    Loss l = { 0 }, moved;

    draw_loss(&l, 12);
    for (unsigned m = 0; m < G_N_ELEMENTS(members); m++)
        check_loss(&l, members[m], 12 / members[m]);
    /* Large logits do not overflow, and shifting all of them changes nothing. */
    moved = l;
    for (unsigned i = 0; i < LOSS_ROWS * LOSS_COLUMNS; i++)
        moved.logits[i / LOSS_COLUMNS][i % LOSS_COLUMNS] += 5000;
    run_loss(&moved, 3, 4, 1, 20);
    check_close(moved.value, l.value, 1e-12, "loss", 0);
}
END_TEST

/* The last rank's columns extend beyond the vocabulary. */
START_TEST(layer_loss_ignores_padding)
{
    static const struct {
        uint64_t vocabulary, width;
        unsigned members;
    } cuts[] = { { 20, 8, 3 }, { 17, 8, 3 }, { 20, 24, 1 }, { 13, 7, 2 }, { 1, 4, 1 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(cuts); i++) {
        Loss l = { 0 };

        draw_loss(&l, cuts[i].vocabulary);
        check_loss(&l, cuts[i].members, cuts[i].width);
    }
}
END_TEST

/* ---- the optimizer ---- */

enum { PARAMETERS = 6 };

typedef struct {
    double w[PARAMETERS], m[PARAMETERS], v[PARAMETERS];
} Adam;

/* One step by hand: step @t with gradient @g. */
static void
plain_adam(Adam *a, const double *g, unsigned count, double scale, int t)
{
    for (unsigned i = 0; i < count; i++) {
        a->m[i] = 0.9 * a->m[i] + 0.1 * g[i] * scale;
        a->v[i] = 0.99 * a->v[i] + 0.01 * g[i] * scale * g[i] * scale;
        a->w[i] *= 1 - 0.02 * 0.1;
        a->w[i] -=
            0.02 * (a->m[i] / (1 - pow(0.9, t))) / (sqrt(a->v[i] / (1 - pow(0.99, t))) + 1e-3);
    }
}

/* Three steps of @count parameters in parts that may be partial; clip 0 disables clipping, 1.5
 * clips some gradients. */
static void
check_adam(const char *kernel, double clip, bool first, unsigned count)
{
    const bool direct = lh_kernels[lh_kernel_find(kernel)]->operands[3].kind == LH_TENSOR_MOMENTS;
    const LhKernelArgs args = { .optimizer = { count, 0.02, 0.9, 0.99, 1e-3, 0.1, clip } };
    const uint32_t moments = count % 2 == 0 ? 2 : 1;
    const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = {
        3, 1, 1, direct ? moments : 2, direct ? 2 : moments, 6
    };
    const char *master = direct ? "w" : "master";
    Adam want = { 0 };
    World w;

    open_world(&w, kernel, &args, parts);
    for (unsigned i = 0; i < count; i++)
        want.w[i] = *at(find(&w, master), i);
    *at(find(&w, "clock"), 0) = first ? (double)NAN : 0;
    for (unsigned i = 0; i < 2 * count; i++)
        *at(find(&w, "moments"), i) = first ? (double)NAN : 0;
    for (int t = 1; t <= 3; t++) {
        double g[PARAMETERS], norm = 0;

        for (unsigned i = 0; i < count; i++) {
            g[i] = *at(find(&w, "gradient"), i) = normal() * t / 2;
            norm += g[i] * g[i];
        }
        w.args.first = true;
        *at(find(&w, "norm"), 0) = (double)NAN;
        run(&w, "grad_norm", REFERENCE);
        check_close(*at(find(&w, "norm"), 0), norm, 1e-14, "norm", 0);
        w.args.first = first && t == 1;
        run(&w, kernel, REFERENCE);
        plain_adam(&want, g, count, clip > 0 ? fmin(1, clip / sqrt(norm)) : 1, t);
        ck_assert(*at(find(&w, "clock"), 0) == t);
        for (unsigned i = 0; i < count; i++) {
            /* In two or three parts each part's second moments follow its first moments. */
            const unsigned per = count / find(&w, "moments")->parts;
            const unsigned at_first = i / per * 2 * per + i % per;

            check_close(*at(find(&w, master), i), want.w[i], 1e-12, "w", i);
            ck_assert(*at(find(&w, "w"), i) == *at(find(&w, master), i));
            check_close(*at(find(&w, "moments"), at_first), want.m[i], 1e-12, "m", i);
            check_close(*at(find(&w, "moments"), at_first + per), want.v[i], 1e-12, "v", i);
        }
    }
    clear(&w);
}

START_TEST(layer_adam_is_its_formula)
{
    const char *const names[] = { "adam", "adam_moments16", "adam_fp32", "adam_direct",
                                  "adam_direct_moments16" };

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        check_adam(names[i], 0, false, PARAMETERS);
        check_adam(names[i], 1.5, false, PARAMETERS);
        check_adam(names[i], 1.5, true, PARAMETERS);
        check_adam(names[i], 1.5, false, PARAMETERS - 1);
        check_adam(names[i], 1.5, true, PARAMETERS - 1);
    }
}
END_TEST

/* The sum of squares accumulates over several calls. */
START_TEST(layer_norms_of_gradients_add_up)
{
    const LhKernelArgs args = { .optimizer = { 1000 } };
    const uint32_t parts[LH_KERNEL_OPERANDS_MAX] = { 4 };
    World w;
    double sum;

    open_world(&w, "grad_norm", &args, parts);
    sum = *at(find(&w, "norm"), 0);
    for (unsigned i = 0; i < 1000; i++)
        sum += pow(*at(find(&w, "gradient"), i), 2);
    run(&w, "grad_norm", REFERENCE);
    check_close(*at(find(&w, "norm"), 0), sum, 1e-13, "norm", 0);
    clear(&w);
}
END_TEST

/* ---- rejected calls ---- */

/* Seven parts, one byte too small in total for the elements. */
static void
cut_too_small(LhView *view, uint64_t elements)
{
    view->parts = 7;
    view->held_bytes = (elements + 6) / 7 * lh_storage_bytes(view->storage) - 1;
}

/* Operands for any kernel here, each of sufficient size. */
static void
give_operands(LhCall *call, const LhKernel *kernel)
{
    static double data[4096], scratch[4096];
    const bool by_members = kernel->args == LH_ARGS_HEADS || kernel->args == LH_ARGS_PRODUCT;

    call->scratch = scratch;
    for (unsigned n = 0; kernel->operands[n].access != LH_OPERAND_END; n++) {
        const bool outside = kernel->operands[n].kind == LH_TENSOR_HIDDEN;

        call->operands[n] = (LhView){
            .data = (unsigned char *)data,
            .parts = outside && by_members ? 2 : 1,
            .part_bytes = 4096,
            .storage =
                kernel->operands[n].element == LH_ELEMENT_INT8 ? LH_STORAGE_INT8 : LH_STORAGE_FP32,
        };
    }
}

/* Makes an operand have no parts (way 0), parts too small for it (1), or too few bytes (2). */
static void
check_refused(unsigned k, const LhKernelArgs *args, unsigned operand, unsigned way)
{
    const LhKernel *kernel = lh_kernels[k];
    LhCall call = { .args = args };

    give_operands(&call, kernel);
    ck_assert_int_eq(lh_cpu_kernels[k]->reference(&call), LH_STATUS_OK);
    if (way == 0)
        call.operands[operand].parts = 0;
    else if (way == 1)
        cut_too_small(&call.operands[operand], kernel->operand_elements(args, operand));
    else
        call.operands[operand].held_bytes = 3;
    ck_assert_msg(lh_cpu_kernels[k]->reference(&call) == LH_STATUS_UNSUPPORTED,
                  "%s operand %u way %u", kernel->name, operand, way);
    ck_assert_int_eq(lh_cpu_kernels[k]->fast(&call), LH_STATUS_UNSUPPORTED);
}

/* For every operand of every kernel. */
START_TEST(layer_kernels_refuse_other_sizes)
{
    static const LhKernelArgs args[] = {
        [LH_ARGS_PRODUCT] = { .product = { 8, 4, 4, 1, { 1, 2 } } },
        [LH_ARGS_ELEMENTS] = { .elements = { 8 } },
        [LH_ARGS_ROWS] = { .rows = { 4, 4, 8, 0, 4, 16, 1e-5 } },
        [LH_ARGS_HEADS] = { .to_heads = { 4, 0, 1, 100, { 1, 2 }, 4, 2, 4 } },
        [LH_ARGS_EXPERTS] = { .experts = { 4, 4, 2, 1 } },
        [LH_ARGS_OPTIMIZER] = { .optimizer = { 8, 1, 0.9, 0.9 } },
        [LH_ARGS_MUON] = { .muon = { 4, 4, 1, 1, 1, 1, 0, false, 1, 1, 1, 1 } },
    };
    unsigned refused = 0;

    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        const LhKernel *kernel = lh_kernels[k];

        if (kernel->effect != LH_EFFECT_LAYER)
            continue;
        for (unsigned i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
            for (unsigned way = 0; way < 3; way++, refused++)
                check_refused(k, &args[kernel->args], i, way);
        }
    }
    ck_assert_uint_gt(refused, 200);
}
END_TEST

LH_TEST_MAIN("kernels_layer", layer_gradients_are_finite_differences,
             layer_norms_add_to_dx_and_dw_apart, layer_products_add_up_in_dx,
             layer_norms_are_their_formulas, layer_activations_are_their_formulas,
             layer_embeddings_are_sums_over_ranks, layer_heads_know_all_layouts,
             layer_out_products_know_all_layouts, layer_loss_is_cross_entropy,
             layer_loss_ignores_padding, layer_adam_is_its_formula, layer_norms_of_gradients_add_up,
             layer_kernels_refuse_other_sizes)
