/*
 * Which schedules a comparison does not tell apart. To first order an error e of a constant moves
 * a time by e times the share of it that the constant makes, and two times by as much if it makes
 * the same share of both: only the difference of shares counts.
 */
#include "plan/apart.h"

#include "plan/compare.h"
#include "sim/accuracy.h"
#include "sim/network/nccl.h"

#include <math.h>

/* What the time of a run goes to: kernels (its own or those of a rank that it waits for), tiers of
 * links, hosts. */
#define PARTS (LH_TIERS + 2)

/* For each part its share of the run, times what its constants are good to. */
static void
weigh_errors(const LhSetup *setup, const LhSimResult *r, double parts[PARTS])
{
    const LhTopology *t = setup->topology;
    const LhLinkClass *const classes[LH_TIERS] = { &t->nvlink, &t->pcie, &t->nic, &t->nic };
    const double whole = MAX((double)r->makespan_ps * r->ranks_count, 1);
    LhTotals totals;

    lh_totals(r, &totals);
    for (int tier = 0; tier < LH_TIERS; tier++) {
        int provenance = classes[tier]->provenance;

        if (setup->collectives == LH_COLLECTIVES_NCCL)
            provenance = MAX(provenance, (int)lh_nccl_provenance(setup->device));
        parts[tier] =
            (double)totals.idle_ps[LH_IDLE_COMM + tier] / whole * lh_provenance_error(provenance);
    }
    parts[LH_TIERS] = ((double)totals.busy_ps + (double)totals.idle_ps[LH_IDLE_IMBALANCE]) / whole *
                      r->compute_error;
    parts[LH_TIERS + 1] = (double)totals.idle_ps[LH_IDLE_HOST] / whole *
                          lh_provenance_error(setup->device->host_provenance);
}

/* The model's own error: what the residuals of whole kernels say of a run holds it. */
static double
model_error(const LhSimResult *r)
{
    const double whole = MAX((double)r->makespan_ps * r->ranks_count, 1);
    LhTotals totals;

    lh_totals(r, &totals);
    return LH_MODEL_ERROR * (1 - (double)totals.busy_ps / whole * r->compute_judged);
}

double
lh_time_error(const LhSetup *setup, const LhSimResult *r)
{
    const double model = model_error(r);
    double parts[PARTS], squares = model * model;

    weigh_errors(setup, r, parts);
    for (int part = 0; part < PARTS; part++)
        squares += parts[part] * parts[part];
    return sqrt(squares);
}

static double
error_between(const LhSetup *setup, const LhSimResult *a, const LhSimResult *b)
{
    double of_a[PARTS], of_b[PARTS], sum = 0;

    weigh_errors(setup, a, of_a);
    weigh_errors(setup, b, of_b);
    for (int part = 0; part < PARTS; part++)
        sum += ABS(of_a[part] - of_b[part]);
    return MAX(sum, LH_MODEL_ERROR);
}

void
lh_compare_tell_apart(const LhSetup *setup, const LhComparison *c)
{
    const LhCompareRow *first = c->fit_count > 0 ? g_ptr_array_index(c->rows, 0) : NULL;

    for (guint i = 1; i < c->fit_count && setup->cost == LH_COST_DEVICE; i++) {
        LhCompareRow *row = g_ptr_array_index(c->rows, i);

        row->error = error_between(setup, first->result, row->result);
        row->tied = (double)row->result->makespan_ps <=
                    (double)first->result->makespan_ps * (1 + row->error);
    }
}
