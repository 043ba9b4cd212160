/* SPDX-License-Identifier: Apache-2.0 */
/* Device files. An accepted one gives the time of every kernel and can be simulated. */
#include "fuzz.h"

#include <math.h>

static void
check_rate(const LhKernelRate *rate)
{
    g_assert(isfinite(rate->rate) && rate->rate > 0);
    g_assert(isfinite(rate->half_length) && rate->half_length >= 0);
    g_assert(rate->from.provenance >= LH_PROVENANCE_MEASURED &&
             rate->from.provenance <= LH_PROVENANCE_ASSUMED);
}

static void
check_rates(const LhDevice *device)
{
    static const uint32_t head_dims[] = { 1, 64, 96, 128, 65536 };

    for (unsigned k = 0; k < LH_KERNELS_COUNT; k++) {
        for (unsigned i = 0; i < 2 * G_N_ELEMENTS(head_dims); i++) {
            LhKernelRate rate;

            if (lh_device_rate(device, lh_kernels[k]->name, i % 2 != 0, head_dims[i / 2], &rate))
                check_rate(&rate);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhDevice) device = lh_device_parse(FUZZ_NAME, (const char *)data, size, &error);
    g_autoptr(LhTopology) topology = NULL;

    fuzz_check_file(device != NULL, error);
    if (device == NULL)
        return 0;
    g_assert(device->sha256 != NULL);
    check_rates(device);
    topology = fuzz_topology();
    fuzz_play_ring(topology, device);
    return 0;
}
