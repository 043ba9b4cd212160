/* SPDX-License-Identifier: Apache-2.0 */
#include "validate/validation.h"

#include <math.h>

static void
validation_free(gpointer data)
{
    LhValidation *v = data;

    g_free(v->refused);
    g_array_unref(v->kernels);
    g_array_unref(v->tiers);
    g_free(v);
}

LhValidated *
lh_validated_new(void)
{
    LhValidated *validated = g_new0(LhValidated, 1);

    validated->rows = g_ptr_array_new_with_free_func(validation_free);
    return validated;
}

void
lh_validated_free(LhValidated *validated)
{
    if (validated == NULL)
        return;
    g_ptr_array_unref(validated->rows);
    lh_slow_hosts_free(validated->hosts);
    g_free(validated->explained);
    g_free(validated->prediction);
    g_free(validated->prediction_sha256);
    g_free(validated);
}

double
lh_validation_error(const LhValidation *v)
{
    return v->predicted_s / v->measured_s - 1;
}

bool
lh_validation_judges(const LhValidation *v, const LhKernelErrors *row)
{
    return row->share >= LH_VALIDATE_SHARE_MIN &&
           row->measured_s >= LH_VALIDATE_SHARE_MIN * v->measured_s * v->ranks;
}

bool
lh_validation_within(const LhValidation *v, double tolerance)
{
    if (v->refused != NULL)
        return true;
    for (guint i = 0; i < v->kernels->len; i++) {
        const LhKernelErrors *row = &g_array_index(v->kernels, LhKernelErrors, i);

        if (lh_validation_judges(v, row) && fabs(row->error_median) > tolerance)
            return false;
    }
    return fabs(lh_validation_error(v)) <= tolerance;
}
