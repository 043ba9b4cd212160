/* SPDX-License-Identifier: Apache-2.0 */
#include "model/framework_states.h"

static double
bytes_of(int type)
{
    return type == LH_TYPE_FP32 ? 4 : 2;
}

/* Of one of the moments; 256 codes have an fp32 scale. */
static double
moment_bytes(const LhFramework *f)
{
    return f->states_moments == LH_STATE_8BIT ? 1 + 4 / 256.0 : bytes_of(f->states_moments);
}

double
lh_framework_optimizer_bytes(const LhFramework *f)
{
    return (f->states_master ? 4 : 0) + 2 * moment_bytes(f);
}

double
lh_framework_gradient_bytes(const LhFramework *f)
{
    return bytes_of(f->states_gradient);
}

double
lh_framework_touched_bytes(const LhFramework *f)
{
    const double updated = f->states_master ? 2 * 4 + 2 : 2 * 2;

    return bytes_of(f->states_gradient) + 4 * moment_bytes(f) + updated;
}

double
lh_framework_optimizer_traffic(const LhFramework *f)
{
    return f->kernels_optimizer * lh_framework_touched_bytes(f) / f->kernels_optimizer_touched;
}
