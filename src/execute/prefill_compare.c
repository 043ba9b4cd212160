/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/prefill_compare.h"

#include "execute/step_rounding.h"
#include "kernels/cpu/rows.h"
#include "step/layer_info.h"
#include "step/step.h"

#define ROUNDINGS_OF_FORWARD_LAYER 16U /* along the path of an activation */

/* A compared tensor: keys or values of a layer, or a row of logits. */
typedef struct {
    double error2, size2; /* sums of squares over all ranks that hold parts of it */
    uint64_t found;       /* elements, on all ranks */
    LhSpread spread;
} Tensor;

enum { K, V, HALVES };

typedef struct {
    const LhStepNumerics *n;
    const LhProgram *program;
    const LhRunResult *result;
    LhModelForward *forward;
    uint32_t layers;
    Tensor *halves; /* [layers][HALVES] */
    GArray *rows;   /* of uint64_t: tokens of rows of logits, numbered over all sequences */
    Tensor *logits; /* [rows] */
    bool measured;  /* spreads are filled in */
} Prefill;

/* ---- rows of logits ---- */

static uint64_t
first_token(const Prefill *c, const LhStepContents *at, uint64_t sequence)
{
    return (at->sequence + sequence) * c->n->reference->shape.tokens + at->positions.start;
}

static guint
find_row(const GArray *rows, uint64_t token)
{
    guint i = 0;

    while (i < rows->len && g_array_index(rows, uint64_t, i) != token)
        i++;
    return i;
}

typedef void (*VisitPart)(Prefill *c, const LhStepContents *at, const LhSlot *slot,
                          const unsigned char *data);

/* Visits all parts that ranks leave. */
static void
visit_results(Prefill *c, VisitPart visit)
{
    for (uint32_t rank = 0; rank < c->result->ranks_count; rank++) {
        for (uint32_t slot = 0; slot < c->program->slots_count; slot++) {
            const LhSlot *s = &c->program->slots[slot];
            LhStepContents at;

            for (uint32_t part = 0; s->role == LH_SLOT_OUTPUT && part < s->parts; part++) {
                if (lh_step_contents(c->program, rank, (uint16_t)slot, part, &at))
                    visit(c, &at, s,
                          lh_run_output(c->result, c->program, rank, (uint16_t)slot, part));
            }
        }
    }
}

static uint64_t
sequences_of(const Prefill *c)
{
    return lh_step_params(c->program)->module.attention.batch;
}

static void
list_rows(Prefill *c, const LhStepContents *at, const LhSlot *slot, const unsigned char *data)
{
    (void)slot;
    (void)data;
    for (uint64_t i = 0; at->state.role == LH_STEP_LOGITS_LAST && i < sequences_of(c); i++) {
        const uint64_t token = first_token(c, at, i);

        if (find_row(c->rows, token) == c->rows->len)
            g_array_append_val(c->rows, token);
    }
}

/* ---- parts ---- */

static void
compare_element(Tensor *t, const LhSlot *slot, const unsigned char *data, uint64_t index,
                double wanted)
{
    const double error = lh_element_get(data, lh_dtype_storage(slot->dtype), index) - wanted;

    t->error2 += error * error;
    t->size2 += wanted * wanted;
    t->found++;
}

static void
compare_logits(Prefill *c, const LhStepContents *at, const LhSlot *slot, const unsigned char *data)
{
    const uint64_t vocabulary = c->n->reference->shape.vocabulary;
    const uint64_t width =
        slot->part_bytes / lh_slot_element_bytes(slot) / sequences_of(c); /* with padding */

    for (uint64_t i = 0; i < sequences_of(c); i++) {
        const guint row = find_row(c->rows, first_token(c, at, i));

        for (uint64_t k = 0; k < at->count; k++)
            compare_element(&c->logits[row], slot, data, i * width + k,
                            c->forward->logits[row * vocabulary + at->first + k]);
    }
}

/* A part holds [sequences][positions][heads][d] of keys, then of values. */
static void
compare_half(Prefill *c, const LhStepContents *at, const LhSlot *slot, const unsigned char *data,
             unsigned half)
{
    const LhReference *a = &c->forward->attention[at->state.layer];
    const uint64_t d = a->attention.head_dim, rows = sequences_of(c) * at->positions.count;
    const double *whole = half == K ? a->k : a->v;
    Tensor *t = &c->halves[at->state.layer * HALVES + half];

    for (uint64_t i = 0; i < rows * at->count; i++) {
        const uint64_t row = i / at->count, head = at->first + i % at->count;
        const uint64_t token =
            at->positions.start + row % at->positions.count * at->positions.stride;
        const uint64_t from = lh_reference_row(a, at->sequence + row / at->positions.count,
                                               (uint32_t)head, a->attention.groups, token);

        for (uint64_t k = 0; k < d; k++)
            compare_element(t, slot, data + half * (slot->part_bytes / 2), i * d + k,
                            whole[from * a->stride + k]);
    }
}

static void
compare_result(Prefill *c, const LhStepContents *at, const LhSlot *slot, const unsigned char *data)
{
    if (at->state.role == LH_STEP_LOGITS_LAST)
        compare_logits(c, at, slot, data);
    for (unsigned half = 0; at->state.role == LH_STEP_KV && half < HALVES; half++)
        compare_half(c, at, slot, data, half);
}

/* ---- rounding ---- */

static void
measure_pass(Prefill *c, const LhModelForward *moved)
{
    const uint64_t vocabulary = c->n->reference->shape.vocabulary;

    for (uint32_t layer = 0; layer < c->layers; layer++) {
        const LhReference *a = &c->forward->attention[layer], *b = &moved->attention[layer];
        const uint64_t count = lh_reference_k_rows(&a->attention) * a->stride;
        Tensor *halves = &c->halves[layer * HALVES];

        lh_step_spread_add(&halves[K].spread, lh_step_distance2(a->k, b->k, count));
        lh_step_spread_add(&halves[V].spread, lh_step_distance2(a->v, b->v, count));
    }
    for (guint row = 0; row < c->rows->len; row++)
        lh_step_spread_add(&c->logits[row].spread,
                           lh_step_distance2(c->forward->logits + row * vocabulary,
                                             moved->logits + row * vocabulary, vocabulary));
}

static void
measure_passes(Prefill *c, const LhModelRows *rows, unsigned threads)
{
    for (uint64_t seed = 1; seed <= LH_DISTURBED_STEPS; seed++) {
        const LhModelNoise noise = lh_step_rounding_noise(c->n, seed);
        LhModelForward *moved = lh_step_numerics_forward(c->n, rows, &noise, threads);

        measure_pass(c, moved);
        lh_model_forward_free(moved);
    }
    c->measured = true;
}

/* ---- report ---- */

/*
 * Adds tensor number @index of a row. @elements is how many it has; ranks may hold several copies
 * of each. The measured spread is that of one copy.
 */
static void
add_tensor(const Prefill *c, const Tensor *t, uint64_t elements, uint32_t roundings,
           LhErrorRow *row)
{
    const double unit = lh_step_rounding(c->n, roundings);
    const double copies = (double)t->found / (double)elements;
    const double measured2 = c->measured ? copies * lh_step_spread_bound2(&t->spread) : 0;
    double units = lh_step_quotient(t->error2, fmax(unit * unit * t->size2, measured2));

    if (t->found == 0 || t->found % elements != 0)
        units = NAN;
    row->rel_l2 = lh_step_worse(lh_step_quotient(t->error2, t->size2), row->rel_l2);
    row->row = lh_step_worse(units, row->row);
    row->mean += units * units; /* the sum, for now */
    row->rounded = MAX(row->rounded, roundings);
}

static void
report_errors(const Prefill *c, LhErrorReport *report)
{
    static const char *const names[HALVES] = { "k cache", "v cache" };
    const LhModelShape *s = &c->n->reference->shape;
    LhErrorRow logits = { .name = "logits" };

    report->ok = true;
    for (unsigned half = 0; half < HALVES; half++) {
        LhErrorRow row = { .name = names[half] };

        for (uint32_t layer = 0; layer < c->layers; layer++) {
            const LhReference *a = &c->forward->attention[layer];

            add_tensor(c, &c->halves[layer * HALVES + half],
                       lh_reference_k_rows(&a->attention) * a->attention.head_dim,
                       ROUNDINGS_OF_FORWARD_LAYER * (layer + 1), &row);
        }
        row.mean = sqrt(row.mean / c->layers);
        lh_step_add_error(report, row);
    }
    for (guint row = 0; row < c->rows->len; row++)
        add_tensor(c, &c->logits[row], s->vocabulary, ROUNDINGS_OF_FORWARD_LAYER * (c->layers + 1),
                   &logits);
    logits.mean = c->rows->len > 0 ? sqrt(logits.mean / c->rows->len) : NAN;
    lh_step_add_error(report, logits);
}

void
lh_prefill_compare(const LhStepNumerics *n, const LhRunResult *result, unsigned threads,
                   LhErrorReport *report)
{
    Prefill c = {
        .n = n, .program = n->program, .result = result, .layers = n->reference->shape.layers_count
    };
    g_autofree Tensor *halves = g_new0(Tensor, (gsize)c.layers * HALVES);
    g_autoptr(GArray) tokens = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autofree Tensor *logits = NULL;
    LhModelRows rows;

    g_assert(result->whole);
    c.halves = halves;
    c.rows = tokens;
    visit_results(&c, list_rows);
    rows = (LhModelRows){ (const uint64_t *)(const void *)tokens->data, tokens->len };
    c.logits = logits = g_new0(Tensor, MAX(tokens->len, 1));
    c.forward = lh_step_numerics_forward(n, &rows, NULL, threads);
    visit_results(&c, compare_result);
    report_errors(&c, report);
    if (!report->ok) {
        measure_passes(&c, &rows, threads);
        lh_error_report_clear(report);
        report_errors(&c, report);
    }
    lh_model_forward_free(c.forward);
}
