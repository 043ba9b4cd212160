/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/provenance.h"

#include <glib.h>

const char *const lh_provenance_names[] = { "measured", "fitted", "datasheet", "assumed", NULL };

/*
 * Sources of the errors. measured: validate finds attention kernels within 4.1 % of calibrate's
 * measurements (docs/manual/validation.md). fitted: the worst error of a curve fitted to a
 * published chart is 10.4 % (docs/reference/devices.md). datasheet: kernels reach 13 to 25 % less
 * than a datasheet's peak (docs/reference/devices.md). assumed: unknown, so wide.
 */
double
lh_provenance_error(int provenance)
{
    static const double errors[] = {
        [LH_PROVENANCE_MEASURED] = 0.05,
        [LH_PROVENANCE_FITTED] = 0.1,
        [LH_PROVENANCE_DATASHEET] = 0.25,
        [LH_PROVENANCE_ASSUMED] = 0.5,
    };

    return errors[provenance];
}

double
lh_fit_error(int provenance, const LhFitResiduals *residuals)
{
    const double worst = MAX(residuals->worst, residuals->holdout);

    return provenance <= LH_PROVENANCE_FITTED && worst > 0 ? worst
                                                           : lh_provenance_error(provenance);
}
