/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate/calibration.h"

#include "base/json/json.h"
#include "calibrate/calibrate_private.h"

#include <math.h>

void
lh_calibrate_tell(const LhCalibrateParams *params, const LhProcesses *processes, const char *what)
{
    if (lh_processes_first(processes))
        lh_task_tell(&params->task, &(LhProgress){ .what = what });
}

bool
lh_calibrate_median(const LhProcesses *processes, double *seconds, double *spread, GError **error)
{
    g_autofree double *all = g_new(double, processes->count);

    if (!lh_processes_gather(processes, *seconds, all, error))
        return false;
    *seconds = lh_median(all, processes->count); /* in order now */
    if (spread != NULL && *seconds > 0)
        *spread = fmax(*spread, (all[processes->count - 1] - all[0]) / *seconds);
    return true;
}

LhFitResiduals
lh_calibrate_residuals(const LhResiduals *r, double spread)
{
    return (LhFitResiduals){
        .median = r->median, .worst = r->worst, .holdout = r->holdout, .spread = spread
    };
}

void
lh_calibration_free(LhCalibration *c)
{
    if (c == NULL)
        return;
    for (guint i = 0; i < c->device.kernels->len; i++) {
        g_free(g_array_index(c->device.kernels, LhKernelRate, i).kernel);
        g_free(g_array_index(c->device.kernels, LhKernelRate, i).from.source);
    }
    for (guint i = 0; i < c->device.elementwise->len; i++) {
        g_free(g_array_index(c->device.elementwise, LhKernelTraffic, i).kernel);
        g_free(g_array_index(c->device.elementwise, LhKernelTraffic, i).from.source);
    }
    g_clear_pointer(&c->checks, g_array_unref);
    g_array_unref(c->device.kernels);
    g_array_unref(c->device.elementwise);
    g_free(c->link.from.source);
    g_free(c->pcie.from.source);
    g_free(c->nic.from.source);
    for (guint i = 0; c->collectives != NULL && i < c->collectives->len; i++)
        lh_json_clear(lh_collective_times_fields,
                      &g_array_index(c->collectives, LhCollectiveTimes, i));
    g_clear_pointer(&c->collectives, g_array_unref);
    lh_cluster_free(c->cluster);
    g_free(c->machine);
    g_free(c->method);
    g_free(c);
}
