/* SPDX-License-Identifier: Apache-2.0 */
/* Reference of sampled rows. */
#include "reference/row_sampling.h"

#include "base/rng.h"
#include "base/time_units.h"
#include "kernels/cpu/rows.h"
#include "reference/reference_slots.h"

#include <string.h>

/* Disjoint from the streams of the inputs (numerics.c). */
#define STREAM_OF_RANK(rank) ((UINT64_C(1) << 32) + (rank))
#define STREAM_OF_HEAD (UINT64_C(1) << 33)

/* ---- the outputs of ranks ---- */

typedef struct {
    uint32_t rank;
    uint16_t slot;
    uint32_t part;
    const LhReferenceSlots *held;
    LhReferencePart at;
} Output;

typedef void (*OutputVisit)(void *data, const Output *output);

static void
visit_slot(const LhReference *r, const LhProgram *program, uint32_t rank, uint16_t slot,
           OutputVisit visit, void *data)
{
    const LhSlot *s = &program->slots[slot];
    LhReferenceSlots held[2] = { 0 };
    const unsigned count = s->role == LH_SLOT_OUTPUT ? lh_reference_slots(r, s, held) : 0;

    for (uint32_t part = 0; part < s->parts; part++) {
        for (unsigned i = 0; i < count && lh_slot_holds(program, s, rank, part); i++) {
            const Output output = { rank, slot, part, &held[i],
                                    lh_reference_slots_part(program, rank, slot, part) };

            if (held[i].name != NULL)
                visit(data, &output);
        }
    }
}

/* Calls @visit for every tensor of every part of the output slots of the ranks in @place. */
static void
visit_outputs(const LhReference *r, const LhProgram *program, const LhControlPlace *place,
              OutputVisit visit, void *data)
{
    for (uint32_t rank = place->first; rank < place->first + place->count; rank++)
        for (uint32_t slot = 0; slot < program->slots_count; slot++)
            visit_slot(r, program, rank, (uint16_t)slot, visit, data);
}

/* ---- choice of tokens ---- */

enum { ELSEWHERE, HELD, DRAWN };

typedef struct {
    LhNumerics *n;
    bool keys;       /* rows are keys; otherwise queries */
    uint8_t *tokens; /* [B N]: ELSEWHERE, HELD or DRAWN */
    uint32_t heads;  /* of the visited tensor */
} Choice;

static uint8_t *
token_of(const Choice *c, uint64_t row)
{
    const uint64_t length = c->n->reference.attention.seq_length;

    return &c->tokens[row / length / c->heads * length + row % length];
}

static void
note_row(void *data, uint64_t row, uint64_t element)
{
    const Choice *c = data;

    (void)element;
    *token_of(c, row) = HELD;
}

static void
mark_drawn_row(void *data, uint64_t row, uint64_t element)
{
    const Choice *c = data;

    (void)element;
    if (*token_of(c, row) == DRAWN)
        (c->keys ? c->n->keys : c->n->queries)[row] = 1;
}

static void
note_output(void *data, const Output *output)
{
    Choice *c = data;

    c->heads = output->held->heads;
    if (output->held->keys == c->keys)
        lh_reference_slots_visit(&c->n->reference, output->held, &output->at, note_row, c);
}

static void
mark_output(void *data, const Output *output)
{
    Choice *c = data;

    c->heads = output->held->heads;
    if (output->held->keys == c->keys)
        lh_reference_slots_visit(&c->n->reference, output->held, &output->at, mark_drawn_row, c);
}

/*
 * Draws the first and the last held token, and a uniformly random set of the others up to @wanted
 * in all.
 */
static void
draw(uint8_t *tokens, uint64_t count, uint64_t wanted, uint64_t seed, uint32_t rank)
{
    uint64_t held = 0, seen = 0, open;

    for (uint64_t i = 0; i < count; i++)
        held += tokens[i] == HELD;
    open = MAX(MIN(wanted, held), 2) - 2;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t between = held - 1 - seen; /* held tokens from this one on, without the
                                                     last */
        bool drawn;

        if (tokens[i] != HELD)
            continue;
        drawn = seen > 0 && between > 0 &&
                lh_rng_uniform(seed, STREAM_OF_RANK(rank), seen) * (double)between < (double)open;
        open -= drawn;
        if (drawn || seen == 0 || between == 0)
            tokens[i] = DRAWN;
        seen++;
    }
}

static void
choose(Choice *c, const LhProgram *program, uint32_t rank, uint32_t wanted)
{
    const LhReference *r = &c->n->reference;
    const LhControlPlace place = { rank, 1 };
    const uint64_t count = r->attention.batch * r->attention.seq_length;

    memset(c->tokens, ELSEWHERE, count);
    visit_outputs(r, program, &place, note_output, c);
    draw(c->tokens, count, wanted, c->n->seed, rank);
    visit_outputs(r, program, &place, mark_output, c);
}

LhNumerics *
lh_row_sample_new(const LhProgram *program, uint64_t seed, LhInputKind inputs, uint32_t tokens,
                  const LhControlPlace *place)
{
    const LhAttention *a = &program->params.attention;
    const bool alone = place->count == lh_program_ranks(program);
    const unsigned threads = alone ? lh_numerics_threads(&program->params) : place->count;
    LhNumerics *n = lh_numerics_new_inputs(&program->params, seed, inputs, threads);
    g_autofree uint8_t *of_tokens = g_new(uint8_t, a->batch * a->seq_length);

    n->queries = g_new0(uint8_t, lh_reference_q_rows(a));
    n->keys = g_new0(uint8_t, lh_reference_k_rows(a));
    for (uint32_t rank = place->first; rank < place->first + place->count; rank++) {
        choose(&(Choice){ .n = n, .tokens = of_tokens }, program, rank, tokens);
        choose(&(Choice){ .n = n, .tokens = of_tokens, .keys = true }, program, rank, tokens);
    }
    return n;
}

/* ---- data from the run's outputs ---- */

typedef struct {
    LhReference *r;
    const LhProgram *program;
    const LhRunResult *result;
    const uint8_t *exact; /* query rows that the reference has computed itself */
    uint8_t *known;       /* bits of each query row: numerics.h */
    const unsigned char *data;
    const LhReferenceSlots *held;
} Told;

static void
take_lse(void *data, uint64_t row, uint64_t element)
{
    const Told *t = data;

    if (!t->exact[row])
        t->r->lse[row] = t->r->peak[row] = lh_element_get(t->data, t->held->storage, element);
    t->known[row] |= LH_KNOWS_LSE;
}

static void
take_delta(void *data, uint64_t row, uint64_t element)
{
    const Told *t = data;
    const double *dout = t->r->dout + row * t->r->stride;
    double delta = 0, size2 = 0;

    for (uint32_t i = 0; i < t->held->dim; i++) {
        const double product = lh_element_get(t->data, t->held->storage, element + i) * dout[i];

        delta += product;
        size2 += product * product;
    }
    if (!t->exact[row]) {
        t->r->delta[row] = delta;
        t->r->delta_size2[row] = size2;
    }
    t->known[row] |= LH_KNOWS_DELTA;
}

static void
take_output(void *data, const Output *output)
{
    Told *t = data;
    const LhReferenceSlots *held = output->held;

    if (held->whole != t->r->lse && held->whole != t->r->o)
        return;
    t->held = held;
    t->data = lh_run_output(t->result, t->program, output->rank, output->slot, output->part) +
              held->offset_bytes;
    lh_reference_slots_visit(t->r, held, &output->at,
                             held->whole == t->r->lse ? take_lse : take_delta, t);
}

/* ---- the reference ---- */

typedef struct {
    LhNumerics *n;
    Told told;
    LhReferenceWork work;
    const LhOpenControl *control;
} Check;

static void
take_outputs(Check *c)
{
    visit_outputs(&c->n->reference, c->told.program, &c->control->place, take_output, &c->told);
}

static bool
knows(const LhReference *r, const uint8_t *known, uint8_t what)
{
    for (uint64_t row = 0; row < lh_reference_q_rows(&r->attention); row++)
        if ((known[row] & what) != what)
            return false;
    return true;
}

/* Clears the rows of heads outside @group. */
static void
keep_group(const LhReference *r, uint8_t *rows, uint64_t count, uint32_t heads, uint64_t group)
{
    const uint32_t share = heads / r->attention.groups;

    for (uint64_t row = 0; row < count; row++)
        if (row / r->attention.seq_length % heads / share != group)
            rows[row] = 0;
}

/*
 * Uses one key-value head: each process computes lse of the queries whose o it has and shares it.
 */
static bool
add_lse(Check *c, const uint8_t *here, GError **error)
{
    const LhReference *r = &c->n->reference;
    const LhAttention *a = &r->attention;
    const uint64_t group = lh_rng_bits(c->n->seed, STREAM_OF_HEAD, 0) % a->groups;
    const uint64_t q_rows = lh_reference_q_rows(a);
    g_autofree uint8_t *wanted = g_new(uint8_t, q_rows);
    LhReferenceWork work = c->work;

    for (uint64_t row = 0; row < q_rows; row++)
        wanted[row] = (here[row] & LH_KNOWS_DELTA) != 0 && !c->n->queries[row];
    keep_group(r, wanted, q_rows, a->heads, group);
    keep_group(r, c->n->keys, lh_reference_k_rows(a), a->groups, group);
    work.queries = wanted;
    work.forward = true;
    lh_reference_queries(&c->n->reference, &work);
    memset(c->told.known, 0, q_rows);
    take_outputs(c); /* restores the delta bits */
    for (uint64_t row = 0; row < q_rows; row++)
        c->told.known[row] |= wanted[row] || c->n->queries[row] ? LH_KNOWS_LSE : 0;
    return lh_numerics_tell(c->n, c->told.known, c->control, error);
}

static bool
refer_keys(Check *c, GError **error)
{
    LhReference *r = &c->n->reference;
    g_autofree uint8_t *here = NULL;

    if (!r->attention.linear) {
        take_outputs(c);
        here = g_memdup2(c->told.known, lh_reference_q_rows(&r->attention));
        if (!lh_numerics_tell(c->n, c->told.known, c->control, error) ||
            (!knows(r, c->told.known, LH_KNOWS_LSE) && !add_lse(c, here, error)))
            return false;
    }
    lh_reference_keys(r, &c->work);
    return true;
}

bool
lh_row_sample_refer(LhNumerics *n, const LhProgram *program, const LhRunResult *result,
                    const LhOpenControl *control, GError **error)
{
    const bool alone = control->place.count == lh_program_ranks(program);
    g_autofree uint8_t *known = g_new0(uint8_t, lh_reference_q_rows(&n->reference.attention));
    const gint64 started_us = g_get_monotonic_time();
    Check c = {
        .n = n,
        .told = { .r = &n->reference,
                  .program = program,
                  .result = result,
                  .exact = n->queries,
                  .known = known },
        .work = { .queries = n->queries,
                  .keys = n->keys,
                  .forward = program->params.pass == LH_PASS_FWD,
                  .threads = alone ? lh_numerics_threads(&program->params) : control->place.count },
        .control = control,
    };
    bool ok;

    lh_reference_queries(&n->reference, &c.work);
    ok = c.work.forward || refer_keys(&c, error);
    n->seconds = (double)(g_get_monotonic_time() - started_us) / LH_US_PER_S;
    return ok;
}
