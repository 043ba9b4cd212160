/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-in for the GPU in a build without CUDA; it returns an error. */
#include "runtime/api/compute_device.h"

#include "base/error.h"

static const char *const absent_kernel_sets[] = { "builtin", "cudnn", NULL };

static bool
refuse_cuda(GError **error)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "this longhaul was built without CUDA: install NVIDIA's CUDA Toolkit with "
                        "nvcc, then meson setup --reconfigure -Dcuda=enabled");
    return false;
}

static bool
refuse_survey(char **driver, GPtrArray *devices, GError **error)
{
    (void)driver;
    (void)devices;
    return refuse_cuda(error);
}

static LhDeviceState *
open_device(const LhDeviceParams *params, GError **error)
{
    (void)params;
    refuse_cuda(error);
    return NULL;
}

const LhRunDevice lh_device_cuda = {
    .name = "cuda",
    .kernel_sets = absent_kernel_sets,
    .probe = refuse_cuda,
    .survey = refuse_survey,
    .open = open_device,
};
