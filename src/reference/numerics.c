/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs and reference. A number of the inputs depends only on (seed, tensor, position, head,
 * dimension), so all placements get the same sequence.
 */
#include "reference/numerics.h"

#include "base/error.h"

#include "base/rng.h"
#include "base/threads.h"
#include "base/time_units.h"
#include "kernels/cpu/rows.h"
#include "reference/reference_slots.h"
#include "runtime/thread_affinity.h"

#include <math.h>
#include <string.h>

#define KEY_LOGIT 60
#define THREADS_MAX 64

const char *const lh_input_names[] = { "normal", "logits4", "logits20", "key60", "equal", NULL };

enum {
    STREAM_Q = 1,
    STREAM_K,
    STREAM_V,
    STREAM_DO,
    STREAM_OTHERS, /* from here on one for every slot */
};

/* ---- inputs ---- */

/* Returns a standard normal number (Box-Muller). */
static double
normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    const double u = 1 - lh_rng_uniform(seed, 2 * stream, index); /* (0, 1] */
    const double angle = 2 * G_PI * lh_rng_uniform(seed, 2 * stream + 1, index);

    return sqrt(-2 * log(u)) * cos(angle);
}

static double
round_to(double x, enum lh_storage storage)
{
    uint64_t cell;

    lh_element_put(&cell, storage, 0, x);
    return lh_element_get(&cell, storage, 0);
}

/* An input tensor. */
typedef struct {
    const LhNumerics *n;
    uint64_t stream;
    double *rows;
    uint32_t heads;
} Input;

/* Returns a number before rounding. */
static double
input_number(const Input *in, uint64_t sequence, uint64_t token, uint32_t head, uint32_t i)
{
    const LhAttention *a = &in->n->reference.attention;
    const LhInputKind kind = in->n->inputs;
    const bool q = in->stream == STREAM_Q, k = in->stream == STREAM_K;
    const uint64_t from = k && kind == LH_INPUTS_EQUAL ? 0 : token;
    const uint64_t row = (sequence * a->seq_length + from) * in->heads + head;
    double factor = 1;

    /*
     * Dimension 0 is 1 in every q and 0 in every k except the middle one, whose logits it raises by
     * 60.
     */
    if (q && kind == LH_INPUTS_KEY60 && i == 0)
        return 1;
    if (k && kind == LH_INPUTS_KEY60 && i == 0)
        return token == a->seq_length / 2 ? KEY_LOGIT * sqrt(a->head_dim) : 0;
    if (q && kind == LH_INPUTS_LOGITS4)
        factor = 4;
    if (q && kind == LH_INPUTS_LOGITS20)
        factor = 20;
    return factor * normal(in->n->seed, in->stream, row * a->head_dim + i);
}

/* Fills in all heads of one token. */
static void
fill_token(void *data, guint index)
{
    const Input *in = data;
    const LhReference *r = &in->n->reference;
    const LhAttention *a = &r->attention;
    const uint64_t sequence = index / a->seq_length, token = index % a->seq_length;

    for (uint32_t head = 0; head < in->heads; head++) {
        double *row = in->rows + lh_reference_row(r, sequence, head, in->heads, token) * r->stride;

        for (uint32_t i = 0; i < a->head_dim; i++)
            row[i] =
                round_to(input_number(in, sequence, token, head, i), lh_dtype_storage(a->dtype));
    }
}

static void
fill_inputs(LhNumerics *n, unsigned threads)
{
    LhReference *r = &n->reference;
    const LhAttention *a = &r->attention;
    Input inputs[] = { { n, STREAM_Q, r->q, a->heads },
                       { n, STREAM_DO, r->dout, a->heads },
                       { n, STREAM_K, r->k, a->groups },
                       { n, STREAM_V, r->v, a->groups } };

    for (unsigned i = 0; i < G_N_ELEMENTS(inputs); i++)
        lh_on_threads_each("inputs", threads, (guint)(a->batch * a->seq_length), fill_token,
                           &inputs[i]);
}

LhNumerics *
lh_numerics_new_inputs(const LhProgramParams *params, uint64_t seed, LhInputKind inputs,
                       unsigned threads)
{
    LhNumerics *n = g_new0(LhNumerics, 1);

    n->inputs = inputs;
    n->seed = seed;
    lh_reference_init(&n->reference, &params->attention, &params->mask);
    fill_inputs(n, threads);
    return n;
}

/* ---- reference ---- */

unsigned
lh_numerics_threads(const LhProgramParams *params)
{
    return MAX(lh_cores_count(), MIN(lh_params_ranks(params), THREADS_MAX));
}

LhNumerics *
lh_numerics_new(const LhProgramParams *params, uint64_t seed, LhInputKind inputs)
{
    LhNumerics *n = lh_numerics_new_inputs(params, seed, inputs, lh_numerics_threads(params));
    const LhReferenceWork work = { .forward = params->pass == LH_PASS_FWD,
                                   .threads = lh_numerics_threads(params) };
    const gint64 started_us = g_get_monotonic_time();

    lh_reference_run(&n->reference, &work);
    n->seconds = (double)(g_get_monotonic_time() - started_us) / LH_US_PER_S;
    return n;
}

static void
want_row(void *data, uint64_t row, uint64_t element)
{
    uint8_t *wanted = data;

    (void)element;
    wanted[row] = LH_KNOWS_BOTH;
}

/* Marks the rows of the reference that input and output slots of the ranks in @place hold. */
static void
mark_rows(const LhReference *r, const LhProgram *program, const LhControlPlace *place,
          uint8_t *queries, uint8_t *keys)
{
    for (uint32_t rank = place->first; rank < place->first + place->count; rank++) {
        for (uint32_t slot = 0; slot < program->slots_count; slot++) {
            const LhSlot *s = &program->slots[slot];
            LhReferenceSlots held[2] = { 0 };
            const unsigned count = s->role == LH_SLOT_TEMP ? 0 : lh_reference_slots(r, s, held);

            for (uint32_t part = 0; count > 0 && held[0].name != NULL && part < s->parts; part++) {
                const LhReferencePart at =
                    lh_reference_slots_part(program, rank, (uint16_t)slot, part);

                if (lh_slot_holds(program, s, rank, part))
                    lh_reference_slots_visit(r, &held[0], &at, want_row,
                                             held[0].keys ? keys : queries);
            }
        }
    }
}

typedef struct {
    uint64_t row, knows;
    double lse, peak, delta, delta_size2;
} ToldRow;

static void
learn(LhReference *r, const ToldRow *told, uint8_t *known)
{
    if (told->knows & LH_KNOWS_LSE) {
        r->lse[told->row] = told->lse;
        r->peak[told->row] = told->peak;
    }
    if (told->knows & LH_KNOWS_DELTA) {
        r->delta[told->row] = told->delta;
        r->delta_size2[told->row] = told->delta_size2;
    }
    known[told->row] |= (uint8_t)told->knows;
}

bool
lh_numerics_tell(LhNumerics *n, uint8_t *known, const LhOpenControl *control, GError **error)
{
    LhReference *r = &n->reference;
    g_autoptr(GByteArray) mine = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    const uint64_t rows = lh_reference_q_rows(&r->attention);

    for (uint64_t row = 0; row < rows; row++) {
        const ToldRow told = { row,          known[row],    r->lse[row],
                               r->peak[row], r->delta[row], r->delta_size2[row] };

        if (known[row] != 0)
            g_byte_array_append(mine, (const guint8 *)&told, sizeof(told));
    }
    if (!control->table->share(control->state, mine, rows * sizeof(ToldRow), all, error))
        return false;
    for (guint at = 0; at < all->len; at += sizeof(ToldRow)) {
        ToldRow told = { .row = UINT64_MAX };

        memcpy(&told, all->data + at, MIN(all->len - at, sizeof(told)));
        if (told.row >= rows || all->len - at < sizeof(told)) {
            g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                                "malformed reference data from another process");
            return false;
        }
        learn(r, &told, known);
    }
    return true;
}

LhNumerics *
lh_numerics_new_shared(const LhProgram *program, uint64_t seed, LhInputKind inputs,
                       const LhOpenControl *control, GError **error)
{
    const LhControlPlace *place = &control->place;
    g_autoptr(LhNumerics) n = NULL;
    g_autofree uint8_t *queries = NULL, *keys = NULL;
    LhReferenceWork work = { .forward = program->params.pass == LH_PASS_FWD,
                             .threads = place->count };
    gint64 started_us;

    if (place->count == lh_program_ranks(program))
        return lh_numerics_new(&program->params, seed, inputs);
    n = lh_numerics_new_inputs(&program->params, seed, inputs, place->count);
    started_us = g_get_monotonic_time();
    work.queries = queries = g_new0(uint8_t, lh_reference_q_rows(&n->reference.attention));
    work.keys = keys = g_new0(uint8_t, lh_reference_k_rows(&n->reference.attention));
    mark_rows(&n->reference, program, place, queries, keys);
    lh_reference_queries(&n->reference, &work);
    if (!lh_numerics_tell(n, queries, control, error))
        return NULL;
    lh_reference_keys(&n->reference, &work);
    n->seconds = (double)(g_get_monotonic_time() - started_us) / LH_US_PER_S;
    return g_steal_pointer(&n);
}

void
lh_numerics_free(LhNumerics *n)
{
    if (n == NULL)
        return;
    lh_reference_clear(&n->reference);
    g_free(n->queries);
    g_free(n->keys);
    g_free(n);
}

/* ---- input slots ---- */

/* Fills tensors without a reference with arbitrary numbers, small enough for long sums. */
static void
load_others(const LhNumerics *n, const LhProgram *program, uint32_t rank, uint16_t slot,
            uint32_t part, unsigned char *data)
{
    const LhSlot *s = &program->slots[slot];
    const enum lh_storage storage = lh_dtype_storage(s->dtype);
    const uint64_t count = s->part_bytes / lh_storage_bytes(storage);
    const uint64_t first = ((uint64_t)rank * s->parts + part) * count;

    for (uint64_t i = 0; i < count; i++)
        lh_element_put(data, storage, i, normal(n->seed, STREAM_OTHERS + slot, first + i));
}

/* Loads the states of a slice of the heads before the segment, [B][h][d][d] in fp32. */
static void
load_state(const LhNumerics *n, const LhReferencePart *part, unsigned char *data)
{
    const LhAttention *a = &n->reference.attention;
    const uint64_t size = (uint64_t)a->head_dim * a->head_dim;
    const uint32_t heads = a->heads / part->slices;
    g_autofree double *state = g_new(double, size);

    for (uint32_t i = 0; i < a->batch * heads; i++) {
        lh_reference_state(&n->reference, i / heads, part->slice * heads + i % heads,
                           part->segment.start, state);
        for (uint64_t k = 0; k < size; k++)
            lh_element_put(data, LH_STORAGE_FP32, i * size + k, state[k]);
    }
}

typedef struct {
    const LhReference *r;
    const LhReferenceSlots *held;
    unsigned char *data;
} Load;

static void
load_row(void *data, uint64_t row, uint64_t element)
{
    const Load *load = data;
    const double *from = lh_reference_slots_row(load->r, load->held, row);

    for (uint32_t i = 0; i < load->held->dim; i++)
        lh_element_put(load->data, load->held->storage, element + i, from[i]);
}

void
lh_numerics_load(const LhNumerics *n, const LhProgram *program, uint32_t rank, uint16_t slot,
                 uint32_t part, unsigned char *data)
{
    const LhReference *r = &n->reference;
    const LhReferencePart at = lh_reference_slots_part(program, rank, slot, part);
    LhReferenceSlots held[2] = { 0 };
    const unsigned count = lh_reference_slots(r, &program->slots[slot], held);

    if (program->slots[slot].kind == LH_TENSOR_STATE)
        load_state(n, &at, data);
    else if (count == 0)
        load_others(n, program, rank, slot, part, data);
    for (unsigned i = 0; i < count; i++) {
        Load load = { r, &held[i], data + held[i].offset_bytes };

        lh_reference_slots_visit(r, &held[i], &at, load_row, &load);
    }
}

void
lh_numerics_load_part(void *load, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *data)
{
    const LhNumericsLoad *l = load;

    lh_numerics_load(l->numerics, l->program, rank, slot, part, data);
}
