/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, and applying them to a device and a topology. */
#include "fuzz.h"
#include "scenario/profile.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProfile) profile = lh_profile_parse(FUZZ_NAME, (const char *)data, size, &error);
    g_autoptr(LhDevice) device = NULL;
    g_autoptr(LhTopology) topology = NULL;
    bool ok;

    fuzz_check_file(profile != NULL, error);
    if (profile == NULL)
        return 0;
    device = fuzz_device();
    topology = fuzz_topology();
    ok = lh_profile_apply(profile, device, topology, &error);
    fuzz_check_file(ok, error);
    if (ok)
        fuzz_play_ring(topology, device);
    return 0;
}
