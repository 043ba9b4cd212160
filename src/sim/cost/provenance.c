/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/provenance.h"

#include <glib.h>

const char *const lh_provenance_names[] = { "measured", "fitted", "datasheet", "assumed", NULL };

/*
 * measured: validate finds attention kernels within 4.1 % of what calibrate measured of them
 * (docs/manual/validation.md). fitted: the worst curve of a published chart is 10.4 % off
 * (docs/reference/devices.md). datasheet: what kernels reach of a datasheet's peak is 13 to 25 %
 * below it (docs/reference/devices.md). assumed: nothing is known; a wide number that says so.
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
