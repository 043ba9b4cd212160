/* A build without CUDA has this in place of the GPU: it refuses. */
#include "runtime/device.h"

#include "base/error.h"

static const char *const kernel_sets[] = { "cuda", NULL };

static bool
refuse(GError **error)
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
    return refuse(error);
}

static LhDeviceState *
open_device(const LhDeviceParams *params, GError **error)
{
    (void)params;
    refuse(error);
    return NULL;
}

const LhRunDevice lh_device_cuda = {
    .name = "cuda",
    .kernel_sets = kernel_sets,
    .probe = refuse,
    .survey = refuse_survey,
    .open = open_device,
};
