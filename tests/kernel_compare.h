/* SPDX-License-Identifier: Apache-2.0 */
/* Compares results of kernels on data with those of their references. */
#pragma once

#include "kernel_runs.h"

static inline char *
shape_text(const Run *r)
{
    const LhKernelArgs *a = &r->c->args;

    if (r->kernel->args == LH_ARGS_PRODUCT)
        return g_strdup_printf("m %lu n %lu k %lu", (gulong)a->product.m, (gulong)a->product.n,
                               (gulong)a->product.k);
    if (r->kernel->args == LH_ARGS_ELEMENTS)
        return g_strdup_printf("%lu elements", (gulong)a->elements.count);
    if (r->kernel->args == LH_ARGS_ROWS)
        return g_strdup_printf("%lu rows of %lu, first %d", (gulong)a->rows.rows,
                               (gulong)a->rows.width, a->first);
    if (r->kernel->args != LH_ARGS_ATTENTION)
        return g_strdup_printf("kind %d", (int)r->kernel->args);
    return g_strdup_printf("nq %lu nk %lu B %u h %u g %u d %u mask %d shift %d first %d decay %g "
                           "q at %ld + %ld k at %ld + %ld stride %lu",
                           (gulong)a->nq, (gulong)a->nk, a->batch, a->heads, a->groups, a->head_dim,
                           a->mask, a->shift, a->first, a->decay, (glong)a->q_at.start,
                           (glong)a->q_at.part_step, (glong)a->k_at.start, (glong)a->k_at.part_step,
                           (gulong)a->stride);
}

static inline void
describe(const Run *r, const char *level, unsigned operand, double error)
{
    g_autofree char *shape = shape_text(r);

    ck_abort_msg("%s %s operand %s: error %g; %s storage %d narrow %d parts %u %u variant %d",
                 level, r->c->kernel, r->kernel->operands[operand].name, error, shape,
                 (int)r->c->storage, r->c->narrow, r->c->q_parts, r->c->k_parts,
                 (int)r->c->variant);
}

/* Minimum number of elements compared together. */
static inline uint64_t
row_width(const Run *r, unsigned operand)
{
    const LhTensorKind kind = r->kernel->operands[operand].kind;

    if (r->kernel->cost == LH_COST_PRODUCT)
        return lh_product_shape(r->kernel, &r->c->args).columns;
    if (r->kernel->args != LH_ARGS_ATTENTION || is_stat(kind))
        return 1;
    return is_scores(kind) ? r->c->args.nk / r->call.operands[operand].parts : r->c->args.head_dim;
}

/* Compares by rel-L2, over all elements and for every row separately, so that one wrong row cannot
 * hide. */
static inline void
compare_elements(const Run *got, const Run *want, const char *level, unsigned operand, double limit)
{
    const LhView *a = &got->call.operands[operand], *b = &want->call.operands[operand];
    const uint64_t count = elements_of(got->c, operand), per = count / a->parts;
    const uint64_t width = row_width(got, operand);
    /* Gradients vanish if one key takes all weight or all keys are equal: they are differences of
     * numbers around 1. */
    const bool one_key = got->c->one_key || got->c->args.nk == 1;
    const double least = got->c->variant >= ONE_KEY_60 || one_key ? (double)width : 0;
    double error = 0, norm = 0, worst = 0;

    for (uint64_t row = 0; row < count; row += width) {
        double row_error = 0, row_norm = least;

        for (uint64_t i = row; i < row + width; i++) {
            const double x = lh_element_get(element_at(a, per, i), a->storage, 0);
            const double y = lh_element_get(element_at(b, per, i), b->storage, 0);

            if (x == y)
                row_norm += isfinite(y) ? y * y : 0;
            else
                row_error += (x - y) * (x - y), row_norm += y * y;
        }
        error += row_error;
        norm += row_norm;
        worst = fmax(worst, isnan(row_error) ? INFINITY : row_error / (row_norm + 1e-3));
    }
    if (!(sqrt(error) <= limit * sqrt(norm)))
        describe(got, level, operand, sqrt(error / norm));
    if (!(sqrt(worst) <= 30 * limit))
        describe(got, level, operand, sqrt(worst));
}

static inline void
compare_stats(const Run *got, const Run *want, const char *level, unsigned operand)
{
    const LhView *a = &got->call.operands[operand], *b = &want->call.operands[operand];
    const LhTensorKind kind = got->kernel->operands[operand].kind;
    const uint64_t per = elements_of(got->c, operand) / a->parts;
    const uint64_t stats =
        stats_of(kind) * got->c->args.batch * got->c->args.nq * got->c->args.heads;

    for (uint64_t i = 0; i < stats; i++) {
        const double x = (double)*stat_at(a, per, stats / a->parts, i);
        const double y = (double)*stat_at(b, per, stats / b->parts, i);

        if (x != y && !(fabs(x - y) <= 1e-5 * (1 + fabs(y))))
            describe(got, level, operand, fabs(x - y));
    }
}

/* @limit gives the permitted error of an operand's elements. */
static inline void
compare(const Run *got, const Run *want, const char *level,
        double (*limit)(const Run *r, unsigned operand))
{
    for (unsigned i = 0; i < got->count; i++) {
        if (got->kernel->operands[i].access == LH_OPERAND_READ) {
            if (memcmp(got->call.operands[i].data, want->call.operands[i].data, got->bytes[i]) != 0)
                describe(got, level, i, -1);
            continue;
        }
        compare_elements(got, want, level, i, limit(got, i));
        compare_stats(got, want, level, i);
    }
}
