/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/step_moments.h"

#include "kernels/cpu/rows.h"
#include "kernels/sizes.h"
#include "step/step.h"

#include <math.h>

/* Rounding errors of a scale and of arithmetic, relative to half the distance of two codes. */
#define SLACK (1 + 0x1p-16)

/* ---- where they are ---- */

static bool
is_same(const LhStepState *a, const LhStepState *b)
{
    return a->weight == b->weight && a->layer == b->layer && a->part == b->part;
}

/* The scales that belong to the moments of @state. */
static const unsigned char *
scales_of(const LhProgram *program, const LhRunResult *result, uint32_t rank,
          const LhStepState *state)
{
    for (uint32_t slot = 0; slot < program->slots_count; slot++) {
        const LhSlot *s = &program->slots[slot];
        LhStepContents c;

        for (uint32_t part = 0; lh_slot_is_result(s) && part < s->parts; part++) {
            if (!lh_step_contents(program, rank, (uint16_t)slot, part, &c) ||
                c.state.family != LH_STEP_OF_SCALES)
                break;
            if (is_same(&c.state, state))
                return lh_run_output(result, program, rank, (uint16_t)slot, part);
        }
    }
    g_assert_not_reached();
}

LhStepMoments
lh_step_moments(const LhProgram *program, const LhRunResult *result, uint32_t rank, uint16_t slot,
                uint32_t part, const LhStepContents *contents)
{
    const LhDtype dtype = program->slots[slot].dtype;
    LhStepMoments m = {
        .data = lh_run_output(result, program, rank, slot, part),
        .storage = lh_dtype_storage(dtype),
        .count = contents->count,
    };

    if (dtype == LH_DTYPE_INT8)
        m.scales = scales_of(program, result, rank, &contents->state);
    return m;
}

/* ---- what they are ---- */

static double
scale_of(const LhStepMoments *m, uint64_t i, bool second)
{
    const uint64_t blocks = lh_moment_scales(m->count) / 2;

    return lh_element_get(m->scales, LH_STORAGE_FP32, (second ? blocks : 0) + i / LH_MOMENT_BLOCK);
}

/* Largest error of rounding to a number of the type. */
static double
half_step(enum lh_storage storage, double x)
{
    switch (storage) {
    case LH_STORAGE_BF16:
        return SLACK * 0x1p-8 * fabs(x);
    case LH_STORAGE_FP16:
        return SLACK * fmax(0x1p-11 * fabs(x), 0x1p-25);
    default:
        return 0;
    }
}

LhStoredNumber
lh_step_moments_first(const LhStepMoments *m, uint64_t i)
{
    LhStoredNumber n = { .value = lh_element_get(m->data, m->storage, i) };
    double half = half_step(m->storage, n.value);

    if (m->scales != NULL) {
        const double scale = scale_of(m, i, false);

        n.value *= scale;
        half = SLACK * scale / 2;
    }
    n.low = n.value - half;
    n.high = n.value + half;
    return n;
}

/* fp16 and codes store roots. */
LhStoredNumber
lh_step_moments_second(const LhStepMoments *m, uint64_t i)
{
    const double scale = m->scales != NULL ? scale_of(m, i, true) : 1;
    double number, half, low, high;

    if (m->scales != NULL)
        number = m->data[m->count + i] * scale;
    else
        number = lh_element_get(m->data, m->storage, m->count + i);
    half = m->scales != NULL ? SLACK * scale / 2 : half_step(m->storage, number);
    low = fmax(number - half, 0);
    high = number + half;
    if (m->scales != NULL || m->storage == LH_STORAGE_FP16)
        return (LhStoredNumber){ number * number, low * low, high * high };
    return (LhStoredNumber){ number, low, high };
}

/* ---- comparison ---- */

double
lh_step_bounds_apart(LhStepBounds a, LhStepBounds b)
{
    if (a.low > b.high)
        return a.low - b.high;
    if (b.low > a.high)
        return b.low - a.high;
    return a.low <= b.high && b.low <= a.high ? 0 : NAN;
}

/* The update by a gradient of which the first moment is @first. */
static double
update_by(const LhModelShape *s, double first)
{
    const double gradient = first / (1 - s->beta1);

    return -s->learning_rate * gradient / (fabs(gradient) + s->adam_epsilon);
}

LhStepBounds
lh_step_moments_update(const LhModelShape *s, double low, double high)
{
    return (LhStepBounds){ update_by(s, high), update_by(s, low) };
}

double
lh_step_moments_disagree(const LhModelShape *s, const LhStoredNumber *first,
                         const LhStoredNumber *second, double *size)
{
    const double nearest =
        lh_step_bounds_apart((LhStepBounds){ first->low, first->high }, (LhStepBounds){ 0 });
    const LhStepBounds by_first = { nearest / (1 - s->beta1),
                                    fmax(fabs(first->low), fabs(first->high)) / (1 - s->beta1) };
    const LhStepBounds by_second = { sqrt(second->low / (1 - s->beta2)),
                                     sqrt(second->high / (1 - s->beta2)) };

    *size = by_first.high;
    return lh_step_bounds_apart(by_first, by_second);
}

/* ---- the reference ---- */

bool
lh_step_moments_are_rounded(const LhProgram *program)
{
    return lh_step_params(program)->behaviour.moments != LH_MOMENTS_FP32;
}

LhModelStates
lh_step_model_states(const LhProgram *program)
{
    const LhStepParams *p = lh_step_params(program);
    const LhDtype dtype = p->module.attention.dtype;
    const LhModelRounding narrow = dtype == LH_DTYPE_FP16   ? LH_MODEL_FP16
                                   : dtype == LH_DTYPE_BF16 ? LH_MODEL_BF16
                                                            : LH_MODEL_EXACT;

    return (LhModelStates){
        .weights = p->behaviour.no_master ? narrow : LH_MODEL_EXACT,
        .moments = p->behaviour.moments == LH_MOMENTS_8BIT    ? LH_MODEL_8BIT
                   : p->behaviour.moments == LH_MOMENTS_16BIT ? narrow
                                                              : LH_MODEL_EXACT,
    };
}

/* Numbers the blocks of one part; returns the next number. */
static uint32_t
number_part(const LhStepContents *c, uint32_t next, uint32_t *blocks)
{
    uint64_t whole;

    for (uint64_t i = 0; i < c->count; i++) {
        if (lh_step_whole_element(c, c->first + i, &whole))
            blocks[whole] = next + (uint32_t)(i / LH_MOMENT_BLOCK);
    }
    return next + (uint32_t)(lh_moment_scales(c->count) / 2);
}

uint32_t
lh_step_moments_blocks(const LhProgram *program, LhStepWeight weight, uint32_t layer,
                       uint32_t *blocks)
{
    uint32_t next = 0;

    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        for (uint32_t slot = 0; slot < program->slots_count; slot++) {
            const LhSlot *s = &program->slots[slot];
            LhStepContents c;

            for (uint32_t part = 0; lh_slot_is_on(s, rank) && part < s->parts; part++) {
                if (!lh_step_contents(program, rank, (uint16_t)slot, part, &c) ||
                    c.state.family != LH_STEP_OF_MOMENTS)
                    break;
                if (c.state.weight == weight && c.state.layer == layer)
                    next = number_part(&c, next, blocks);
            }
        }
    }
    return next;
}
