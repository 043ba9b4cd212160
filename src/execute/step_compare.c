/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/step_compare.h"

#include "execute/step_moments.h"
#include "execute/step_muon.h"
#include "execute/step_rounding.h"
#include "kernels/cpu/rows.h"
#include "step/layer_info.h"
#include "step/lora.h"
#include "step/muon/muon.h"

#include <math.h>

/* ---- accumulators ---- */

/* Compared quantities of a weight. */
typedef enum { GRADIENT, SECOND, MASTER, WEIGHTS, QUANTITIES } Quantity;

/* Sums of squares over all parts of a tensor on all ranks: of the errors, of the magnitude they are
 * relative to, and of the unit they are counted in. */
typedef struct {
    double error2, size2, unit2;
    bool there;
} SquareSums;

/* Moments of a whole weight, as held by the ranks; NaN where no rank holds them. */
typedef struct {
    double *first, *second;
    double *low, *high; /* bounds of the first moments before they were rounded; NULL: fp32 */
    /* Of Muon, in place of the first moments, once they have been compared: the update that they
     * make; and the expected square of the error of one of its elements. */
    double update_unit2;
} Moments;

typedef struct {
    const LhStepNumerics *n;
    const LhProgram *program;
    const LhRunResult *result;
    uint32_t layers;
    SquareSums *sums;  /* [layers][weights][quantities] */
    Moments *moments;  /* [layers][weights] */
    SquareSums update; /* of all weights, against the reference's update */
    double parameters;
    double loss_error, squares_error; /* relative, of the worst rank */
    LhSpread *gradients;              /* [layers][weights]; NULL: no disturbed steps */
    LhSpread loss_spread, squares_spread, update_spread;
} Comparison;

static SquareSums *
sums_of(const Comparison *c, LhStepWeight weight, uint32_t layer, Quantity quantity)
{
    return &c->sums[(layer * LH_STEP_WEIGHTS + weight) * QUANTITIES + quantity];
}

static Moments *
moments_of(const Comparison *c, LhStepWeight weight, uint32_t layer)
{
    return &c->moments[layer * LH_STEP_WEIGHTS + weight];
}

static const LhModelTensor *
reference_of(const Comparison *c, LhStepWeight weight, uint32_t layer)
{
    return lh_model_tensor(c->n->reference, (LhModelWeight)weight, layer);
}

static void
compare_number(const unsigned char *data, double wanted, double *error)
{
    const double found = lh_element_get(data, LH_STORAGE_FP32, 0);

    *error = lh_step_worse(fabs(found - wanted) / fabs(wanted), *error);
}

/* ---- units ---- */

#define ROUNDINGS_OF_LAYER 32U /* along the path of a gradient */
#define ADAM_ROUNDINGS 8.0     /* of the fp32 numbers of an update */
#define FLIPS_PER_ERROR 1.3    /* 4 / pi: see update_unit() */
#define FLIPS 2.0

static uint32_t
roundings_of(const LhStepNumerics *n)
{
    return ROUNDINGS_OF_LAYER * (n->reference->shape.layers_count + 1);
}

/* Expected rounding error of a gradient, relative to its size. */
static double
gradient_unit(const LhStepNumerics *n)
{
    return lh_step_rounding(n, roundings_of(n));
}

/*
 * Resulting error of the first update of all weights together, relative to its size. Adam's first
 * step is the learning rate times the gradient's sign. A gradient with an error of e times the size
 * of its neighbours has the wrong sign with probability e / pi, if both are normal. A few wrong
 * signs are always allowed.
 */
static double
update_unit(const Comparison *c)
{
    return sqrt(FLIPS_PER_ERROR * gradient_unit(c->n) + 4 * FLIPS / c->parameters);
}

static double
square_of(double x)
{
    return x * x;
}

static bool
is_of_muon(const Comparison *c, LhStepWeight weight)
{
    return lh_muon_has(lh_step_params(c->program), weight);
}

/* Adds one disturbed step. */
static void
measure_step(Comparison *c, const LhModelNoise *noise)
{
    LhModelReference *r = lh_step_numerics_disturbed(c->n, noise);
    double update2 = 0;

    lh_step_spread_add(&c->loss_spread, square_of(r->loss - c->n->reference->loss));
    lh_step_spread_add(&c->squares_spread, square_of(r->squares - c->n->reference->squares));
    for (uint32_t layer = 0; layer < c->layers; layer++) {
        for (unsigned w = 0; w < (layer == 0 ? LH_STEP_WEIGHTS : LH_STEP_W_LAYER); w++) {
            const LhModelTensor *t = reference_of(c, (LhStepWeight)w, layer);
            const LhModelTensor *moved = lh_model_tensor(r, (LhModelWeight)w, layer);
            const uint64_t count = t->rows * t->columns;

            lh_step_spread_add(&c->gradients[layer * LH_STEP_WEIGHTS + w],
                               lh_step_distance2(moved->first, t->first, count));
            if (!is_of_muon(c, (LhStepWeight)w))
                update2 += lh_step_distance2(moved->value, t->value, count);
        }
    }
    lh_step_spread_add(&c->update_spread, update2);
    lh_model_reference_free(r);
}

static void
measure_rounding(Comparison *c)
{
    for (uint64_t seed = 1; seed <= LH_DISTURBED_STEPS; seed++) {
        const LhModelNoise noise = lh_step_rounding_noise(c->n, seed);

        measure_step(c, &noise);
    }
}

/* ---- parts ---- */

/*
 * Moments are compared with the reference's, which are rounded at the same places. Where the two
 * differ by e before that, they are on both sides of a boundary, one step apart, with the
 * probability e / step, so that the expected square of the error is e step.
 */
static void
compare_moments(const Comparison *c, const LhStepContents *at, const LhStepMoments *found)
{
    const LhModelTensor *t = reference_of(c, at->state.weight, at->state.layer);
    const Moments *all = moments_of(c, at->state.weight, at->state.layer);
    const double unit = gradient_unit(c->n);
    uint64_t whole;

    for (uint64_t i = 0; i < at->count; i++) {
        SquareSums *sums = sums_of(c, at->state.weight, at->state.layer, GRADIENT);
        LhStoredNumber first, second;
        double error, e, size;

        sums->there = true;
        if (!lh_step_whole_element(at, at->first + i, &whole))
            continue;
        first = lh_step_moments_first(found, i);
        second = lh_step_moments_second(found, i);
        all->first[whole] = first.value;
        all->second[whole] = second.value;
        error = first.value - t->first[whole];
        e = unit * fabs(t->first[whole]);
        sums->error2 += error * error;
        sums->size2 += t->first[whole] * t->first[whole];
        sums->unit2 += e * e + e * (first.high - first.low);
        if (all->low == NULL)
            continue;
        all->low[whole] = first.low;
        all->high[whole] = first.high;
        sums = sums_of(c, at->state.weight, at->state.layer, SECOND);
        error = lh_step_moments_disagree(&c->n->reference->shape, &first, &second, &size);
        sums->there = true;
        sums->error2 += error * error;
        sums->size2 += size * size;
        sums->unit2 += ADAM_ROUNDINGS * LH_FP32_ROUNDOFF * LH_FP32_ROUNDOFF * size * size;
    }
}

/* The same of Muon's momentum, the first moment. */
static void
compare_momentum(const Comparison *c, const LhStepContents *at, const LhStepMoments *found)
{
    const LhModelTensor *t = reference_of(c, at->state.weight, at->state.layer);
    const Moments *all = moments_of(c, at->state.weight, at->state.layer);
    SquareSums *sums = sums_of(c, at->state.weight, at->state.layer, GRADIENT);
    uint64_t whole;

    sums->there = true;
    for (uint64_t i = 0; i < at->count; i++) {
        LhStoredNumber first;
        double error, e;

        if (!lh_step_whole_element(at, at->first + i, &whole))
            continue;
        first = lh_step_moments_first(found, i);
        all->first[whole] = first.value;
        error = first.value - t->first[whole];
        e = gradient_unit(c->n) * fabs(t->first[whole]);
        sums->error2 += error * error;
        sums->size2 += t->first[whole] * t->first[whole];
        sums->unit2 += e * e + e * (first.high - first.low);
    }
}

/* Bounds of the first update of a weight with these moments. */
static LhStepBounds
first_update(const Comparison *c, const Moments *m, LhStepWeight weight, uint64_t whole)
{
    const LhModelShape *s = &c->n->reference->shape;
    double update;

    if (is_of_muon(c, weight))
        return (LhStepBounds){ m->first[whole], m->first[whole] };
    if (m->low != NULL)
        return lh_step_moments_update(s, m->low[whole], m->high[whole]);
    update = -s->learning_rate * m->first[whole] / (1 - s->beta1) /
             (sqrt(m->second[whole] / (1 - s->beta2)) + s->adam_epsilon);
    return (LhStepBounds){ update, update };
}

/* A number as the slot stores it. */
static double
stored(const LhSlot *slot, double x)
{
    uint64_t cell;

    lh_element_put(&cell, lh_dtype_storage(slot->dtype), 0, x);
    return lh_element_get(&cell, lh_dtype_storage(slot->dtype), 0);
}

/* Weights without an fp32 copy that Muon updates, with errors whose expected square is @error2: as
 * in compare_moments(), a few of them are rounded to the next number. */
static void
compare_direct_muon(const LhSlot *slot, double before, double found, double update, double error2,
                    SquareSums *sums)
{
    const double error = found - stored(slot, before + update);
    const double step = 2 * lh_step_roundoff(slot->dtype) * fabs(before + update);

    sums->error2 += error * error;
    sums->size2 += update * update;
    sums->unit2 += error2 + sqrt(error2) * step;
}

/* Weights without an fp32 copy: exactly those between the bounds, rounded once. */
static void
compare_direct(const LhSlot *slot, double before, double found, const LhStepBounds *update,
               SquareSums *sums)
{
    const double slack =
        ADAM_ROUNDINGS * LH_FP32_ROUNDOFF * (fabs(before) + fmax(fabs(update->low), update->high));
    const double error =
        lh_step_bounds_apart((LhStepBounds){ found, found },
                             (LhStepBounds){ stored(slot, before + update->low - slack),
                                             stored(slot, before + update->high + slack) });

    sums->error2 += error * error;
    sums->size2 += update->low * update->low;
    sums->unit2 += LH_FP32_ROUNDOFF * LH_FP32_ROUNDOFF * before * before + slack * slack;
}

/* A frozen weight has not changed at all: its unit is 0. */
static bool
is_trained(const Comparison *c, LhStepWeight weight)
{
    return lh_step_is_trained(lh_step_params(c->program), weight);
}

/* Compares weights with the initial ones updated by the moments found, and, for fp32 weights of all
 * tensors together, with the reference's. */
static void
compare_weights(Comparison *c, const LhSlot *slot, const LhStepContents *at,
                const unsigned char *data)
{
    const Quantity quantity = at->state.family == LH_STEP_OF_MASTER ? MASTER : WEIGHTS;
    const bool direct = lh_step_params(c->program)->behaviour.no_master;
    const LhModelTensor *t = reference_of(c, at->state.weight, at->state.layer);
    const double *initial = lh_step_initial(c->n, at->state.weight, at->state.layer);
    const double u = lh_step_roundoff(slot->dtype);
    SquareSums *sums = sums_of(c, at->state.weight, at->state.layer, quantity);
    const Moments *of = moments_of(c, at->state.weight, at->state.layer);
    uint64_t whole;

    sums->there = true;
    for (uint64_t i = 0; i < at->count; i++) {
        double before, found, error;
        LhStepBounds moved;

        if (!lh_step_whole_element(at, at->first + i, &whole))
            continue;
        before = initial[whole];
        found = lh_element_get(data, lh_dtype_storage(slot->dtype), i);
        if (!is_trained(c, at->state.weight)) {
            sums->error2 += (found - before) * (found - before);
            continue;
        }
        moved = first_update(c, of, at->state.weight, whole);
        if (direct && is_of_muon(c, at->state.weight)) {
            compare_direct_muon(slot, before, found, moved.low, of->update_unit2, sums);
            continue;
        }
        if (direct) {
            compare_direct(slot, before, found, &moved, sums);
            continue;
        }
        error = lh_step_bounds_apart((LhStepBounds){ found - before, found - before }, moved);
        sums->error2 += error * error;
        sums->size2 += moved.low * moved.low;
        sums->unit2 +=
            u * u * (before * before + ADAM_ROUNDINGS * moved.low * moved.low) + of->update_unit2;
        if (slot->dtype != LH_DTYPE_FP32 || is_of_muon(c, at->state.weight))
            continue;
        error = found - t->value[whole];
        c->update.there = true;
        c->update.error2 += error * error;
        c->update.size2 += (t->value[whole] - before) * (t->value[whole] - before);
    }
}

static void
compare_part(Comparison *c, uint32_t rank, uint16_t slot, uint32_t part, bool weights)
{
    const unsigned char *data = lh_run_output(c->result, c->program, rank, slot, part);
    LhStepContents at;

    if (!lh_step_contents(c->program, rank, slot, part, &at))
        return;
    if (weights &&
        (at.state.family == LH_STEP_OF_MASTER || at.state.family == LH_STEP_OF_WEIGHT ||
         at.state.family == LH_STEP_OF_WEIGHT_SHARD || at.state.family == LH_STEP_OF_HOST_WEIGHT))
        compare_weights(c, &c->program->slots[slot], &at, data);
    else if (!weights && at.state.family == LH_STEP_OF_MOMENTS) {
        const LhStepMoments found = lh_step_moments(c->program, c->result, rank, slot, part, &at);

        compare_moments(c, &at, &found);
    } else if (!weights && at.state.family == LH_STEP_OF_MOMENTUM) {
        const LhStepMoments found = lh_step_moments(c->program, c->result, rank, slot, part, &at);

        compare_momentum(c, &at, &found);
    } else if (!weights && at.state.family == LH_STEP_OF_LOSS)
        compare_number(data, c->n->reference->loss, &c->loss_error);
    else if (!weights && at.state.family == LH_STEP_OF_NORM && c->n->reference->shape.clip > 0)
        compare_number(data, c->n->reference->squares, &c->squares_error);
}

static void
compare_ranks(Comparison *c, bool weights)
{
    for (uint32_t rank = 0; rank < c->result->ranks_count; rank++) {
        for (uint32_t slot = 0; slot < c->program->slots_count; slot++) {
            if (!lh_slot_is_result(&c->program->slots[slot]))
                continue;
            for (uint32_t part = 0; part < c->program->slots[slot].parts; part++)
                compare_part(c, rank, (uint16_t)slot, part, weights);
        }
    }
}

/* ---- report ---- */

static const char *
row_name(LhStepWeight weight, Quantity quantity)
{
    static const char *const names[QUANTITIES] = {
        [GRADIENT] = "gradient",
        [SECOND] = "second moment",
        [MASTER] = "master",
        [WEIGHTS] = "weights",
    };
    g_autofree char *name = g_strdup_printf("%s %s", lh_step_weight_name(weight), names[quantity]);

    return g_intern_string(name);
}

/* Adds a row with one relative error. */
static void
add_one(LhErrorReport *report, const char *name, double error, double unit)
{
    lh_step_add_error(report, (LhErrorRow){ .name = name,
                                            .rel_l2 = error,
                                            .mean = error / unit,
                                            .row = error / unit,
                                            .rounded = 1 });
}

/* Squared unit of a quantity whose squared size is @size2. */
static double
unit2_of(double formula, const LhSpread *spread, double size2)
{
    return fmax(formula * formula * size2, lh_step_spread_bound2(spread));
}

static double
gradient_unit2(const Comparison *c, LhStepWeight weight, uint32_t layer, const SquareSums *s)
{
    return c->gradients != NULL
               ? fmax(s->unit2,
                      lh_step_spread_bound2(&c->gradients[layer * LH_STEP_WEIGHTS + weight]))
               : s->unit2;
}

static void
add_weight(LhErrorReport *report, const Comparison *c, LhStepWeight weight, Quantity quantity)
{
    LhErrorRow row = { .name = row_name(weight, quantity),
                       .rounded = quantity == GRADIENT ? roundings_of(c->n) : 1 };
    double squares = 0;
    uint32_t tensors = 0;

    for (uint32_t layer = 0; layer < c->layers; layer++) {
        const SquareSums *s = sums_of(c, weight, layer, quantity);
        const double units = lh_step_quotient(
            s->error2, quantity == GRADIENT ? gradient_unit2(c, weight, layer, s) : s->unit2);

        row.rel_l2 = lh_step_worse(lh_step_quotient(s->error2, s->size2), row.rel_l2);
        row.row = lh_step_worse(units, row.row);
        squares += units * units;
        tensors += s->there;
    }
    if (tensors == 0)
        return;
    row.mean = sqrt(squares / tensors);
    lh_step_add_error(report, row);
}

static void
make_report(const Comparison *c, LhErrorReport *report)
{
    const LhModelReference *r = c->n->reference;
    const double unit = gradient_unit(c->n);

    report->ok = true;
    add_one(report, "loss", c->loss_error,
            sqrt(unit2_of(unit, &c->loss_spread, r->loss * r->loss)) / fabs(r->loss));
    if (r->shape.clip > 0) /* the relative error of the square is twice the norm's */
        add_one(report, "grad norm", c->squares_error / 2,
                sqrt(unit2_of(2 * unit, &c->squares_spread, r->squares * r->squares)) / r->squares /
                    2);
    for (unsigned quantity = 0; quantity < QUANTITIES; quantity++) {
        for (unsigned w = 0; w < LH_STEP_WEIGHTS; w++)
            add_weight(report, c, (LhStepWeight)w, (Quantity)quantity);
    }
    if (c->update.there)
        add_one(
            report, "update", lh_step_quotient(c->update.error2, c->update.size2),
            sqrt(unit2_of(update_unit(c), &c->update_spread, c->update.size2) / c->update.size2));
}

/* ---- comparison ---- */

static double *
nobodys(uint64_t count)
{
    double *numbers = g_new(double, count);

    for (uint64_t i = 0; i < count; i++)
        numbers[i] = NAN;
    return numbers;
}

static void
make_moments(Comparison *c)
{
    const bool rounded = lh_step_moments_are_rounded(c->program);

    for (uint32_t layer = 0; layer < c->layers; layer++) {
        for (unsigned w = 0; w < LH_STEP_WEIGHTS; w++) {
            const LhModelTensor *t = reference_of(c, (LhStepWeight)w, layer);
            const uint64_t count = w < LH_STEP_W_LAYER || layer == 0 ? t->rows * t->columns : 0;

            *moments_of(c, (LhStepWeight)w, layer) = (Moments){
                .first = nobodys(count),
                .second = nobodys(count),
                .low = rounded ? nobodys(count) : NULL,
                .high = rounded ? nobodys(count) : NULL,
            };
            c->parameters += is_trained(c, (LhStepWeight)w) && !is_of_muon(c, (LhStepWeight)w)
                                 ? (double)count
                                 : 0;
        }
    }
}

/* Replaces momenta by the updates that they make. */
static void
make_updates(const Comparison *c)
{
    for (uint32_t layer = 0; layer < c->layers; layer++) {
        for (unsigned w = 0; w < LH_STEP_W_LAYER; w++) {
            Moments *m = moments_of(c, (LhStepWeight)w, layer);

            if (is_of_muon(c, (LhStepWeight)w) && reference_of(c, (LhStepWeight)w, layer)->rows > 0)
                m->update_unit2 = lh_step_muon_update(c->n, (LhStepWeight)w, layer, m->first);
        }
    }
}

void
lh_step_compare(const LhStepNumerics *n, const LhRunResult *result, LhErrorReport *report)
{
    const uint32_t layers = n->reference->shape.layers_count;
    const uint32_t tensors = layers * LH_STEP_WEIGHTS;
    g_autofree SquareSums *sums = g_new0(SquareSums, (gsize)tensors * QUANTITIES);
    g_autofree Moments *moments = g_new0(Moments, tensors);
    g_autofree LhSpread *spreads = NULL;
    Comparison c = { .n = n,
                     .program = n->program,
                     .result = result,
                     .layers = layers,
                     .sums = sums,
                     .moments = moments };

    g_assert(result->whole && n->reference->clock == 1);
    make_moments(&c);
    compare_ranks(&c, false);
    make_updates(&c);
    compare_ranks(&c, true);
    make_report(&c, report);
    if (!report->ok) {
        c.gradients = spreads = g_new0(LhSpread, tensors);
        measure_rounding(&c);
        lh_error_report_clear(report);
        make_report(&c, report);
    }
    for (uint32_t i = 0; i < tensors; i++) {
        g_free(moments[i].first);
        g_free(moments[i].second);
        g_free(moments[i].low);
        g_free(moments[i].high);
    }
}

/*
 * Expected error of the loss after @steps steps that comes from rounded moments: where run and
 * reference differ by e relative to the largest number, a share of e CODES of them ends up one code
 * apart, so that updates differ by 1 / CODES there, sqrt(e / CODES) on the whole, in random
 * directions.
 */
#define CODES 127.0

static double
unit_of_rounded_moments(const LhStepNumerics *n, uint64_t steps)
{
    if (!lh_step_moments_are_rounded(n->program))
        return 0;
    return n->reference->shape.learning_rate * sqrt((double)steps * gradient_unit(n) / CODES);
}

void
lh_step_compare_losses(const LhStepNumerics *n, const double *losses, const double *reference,
                       uint64_t steps, LhErrorReport *report)
{
    double error = 0;

    for (uint64_t i = 0; i < steps; i++)
        error = lh_step_worse(fabs(losses[i] - reference[i]) / fabs(reference[0]), error);
    if (steps > 1)
        add_one(report, "losses", error, gradient_unit(n) + unit_of_rounded_moments(n, steps));
}
