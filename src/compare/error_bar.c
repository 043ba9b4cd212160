/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error bar of the difference of two times. To first order, a relative error e of a constant
 * changes a time by e times the constant's share of it. If the constant has the same share of both
 * times, they change alike: only the difference of shares counts.
 */
#include "compare/error_bar.h"

#include "compare/totals.h"
#include "sim/cost/provenance.h"
#include "sim/network/collectives/nccl_model.h"

#include <math.h>

double
lh_memory_error(const LhSetup *setup)
{
    return setup->step != NULL && setup->cost == LH_COST_DEVICE ? LH_MEMORY_ERROR : 0;
}

/* Sums of doubles are rounded to these digits: fast-forwarding changes their last digits, but not
 * the time. */
#define ERROR_DIGITS 1e9

/* By how much the longer time is longer, as a share; 0 if the shorter one is unknown. */
static double
beyond(LhTime longer_ps, LhTime shorter_ps)
{
    return shorter_ps > 0 && longer_ps > shorter_ps ? (double)longer_ps / (double)shorter_ps - 1
                                                    : 0;
}

LhErrorParts
lh_error_parts(const LhSetup *setup, const LhSimResult *r)
{
    const LhTopology *t = setup->topology;
    const LhLinkClass *const classes[LH_TIERS] = { &t->nvlink, &t->pcie, &t->nic, &t->nic };
    const double whole = MAX((double)r->makespan_ps * r->ranks_count, 1);
    LhErrorParts parts;
    LhTotals totals;

    lh_totals(r, &totals);
    for (int tier = 0; tier < LH_TIERS; tier++) {
        int provenance = classes[tier]->from.provenance;

        if (tier == LH_TIER_PCIE)
            provenance = MAX(provenance, lh_pcie_provenance(&t->tree));
        if (setup->collectives == LH_COLLECTIVES_NCCL)
            provenance = MAX(provenance, (int)lh_nccl_provenance(setup->device));
        parts.part[tier] =
            (double)totals.idle_ps[LH_IDLE_COMM + tier] / whole * lh_provenance_error(provenance);
    }
    parts.part[LH_ERROR_KERNELS] =
        ((double)totals.busy_ps + (double)totals.idle_ps[LH_IDLE_IMBALANCE]) / whole *
        r->compute_error;
    parts.part[LH_ERROR_HOST] = (double)totals.idle_ps[LH_IDLE_HOST] / whole *
                                lh_provenance_error(setup->device->host_provenance);
    parts.part[LH_ERROR_SLOWER] = beyond(r->slowest_ps, r->makespan_ps);
    parts.part[LH_ERROR_FASTER] = beyond(r->makespan_ps, r->fastest_ps);
    return parts;
}

/* The model's own error. The part of the run covered by residuals of whole kernels already includes
 * it. */
static double
model_error(const LhSimResult *r)
{
    const double whole = MAX((double)r->makespan_ps * r->ranks_count, 1);
    LhTotals totals;

    lh_totals(r, &totals);
    return LH_MODEL_ERROR * (1 - (double)totals.busy_ps / whole * r->compute_judged);
}

static double
root_of(double squares)
{
    return round(sqrt(squares) * ERROR_DIGITS) / ERROR_DIGITS;
}

LhTimeError
lh_time_error(const LhSetup *setup, const LhSimResult *r)
{
    const double model = model_error(r);
    const LhErrorParts parts = lh_error_parts(setup, r);
    const double slower = parts.part[LH_ERROR_SLOWER], faster = parts.part[LH_ERROR_FASTER];
    double squares = model * model;

    for (int part = 0; part < LH_ERROR_SLOWER; part++)
        squares += parts.part[part] * parts.part[part];
    return (LhTimeError){ .below = root_of(squares + faster * faster),
                          .above = root_of(squares + slower * slower) };
}

/* A part's contribution to the difference. Assumptions about messages apply to both runs at once:
 * the contribution is the larger change at either end of the assumed range. */
static double
part_between(const LhErrorParts *a, const LhErrorParts *b, int part)
{
    const double *x = a->part, *y = b->part;

    if (part != LH_ERROR_SLOWER)
        return ABS(x[part] - y[part]);
    return MAX(MAX((1 + x[LH_ERROR_SLOWER]) / (1 + y[LH_ERROR_SLOWER]),
                   (1 + y[LH_ERROR_FASTER]) / (1 + x[LH_ERROR_FASTER])) -
                   1,
               0);
}

double
lh_error_between(const LhErrorParts *a, const LhErrorParts *b)
{
    double sum = 0;

    for (int part = 0; part <= LH_ERROR_SLOWER; part++)
        sum += part_between(a, b, part);
    return MAX(sum, LH_MODEL_ERROR);
}

int
lh_error_between_most(const LhErrorParts *a, const LhErrorParts *b)
{
    double sum = 0, most = 0;
    int found = LH_ERROR_PARTS;

    for (int part = 0; part <= LH_ERROR_SLOWER; part++) {
        const double difference = part_between(a, b, part);

        sum += difference;
        if (difference > most) {
            most = difference;
            found = part;
        }
    }
    return sum > LH_MODEL_ERROR ? found : LH_ERROR_PARTS;
}
