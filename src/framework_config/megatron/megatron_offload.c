/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As of github:NVIDIA/Megatron-LM@0d41ecd, megatron/training/arguments.py and
 * megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py.
 */
#include "framework_config/megatron/megatron_offload.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"

static bool
take_optimizer(LhConfig *c, GError **error)
{
    const LhSettingsEntry *fraction = lh_config_entry(c, "optimizer-offload-fraction");
    const LhSettingsEntry *overlap = lh_config_entry(c, "overlap-cpu-optimizer-d2h-h2d");
    bool offloads = false, overlaps = false;

    if (!lh_config_flag(c, "optimizer-cpu-offload", &offloads, error) ||
        !lh_config_flag(c, "overlap-cpu-optimizer-d2h-h2d", &overlaps, error))
        return false;
    if (!offloads && (overlaps || fraction != NULL))
        lh_config_note(c, overlaps ? overlap : fraction,
                       "it needs --optimizer-cpu-offload, which is not given");
    if (!offloads)
        return true;
    lh_config_set(c, lh_config_entry(c, "optimizer-cpu-offload"), LH_CONFIG_WAY,
                  "optimizer_cpu_offload", NULL);
    if (fraction != NULL)
        lh_config_set(c, fraction, LH_CONFIG_WAY, "optimizer_offload_fraction",
                      lh_settings_entry_value(fraction));
    if (overlaps)
        lh_config_set(c, overlap, LH_CONFIG_WAY, "overlap_cpu_optimizer_d2h_h2d", NULL);
    return true;
}

/* NeMo has a number of layers also where nothing is offloaded. */
static bool
take_activations(LhConfig *c, GError **error)
{
    const LhSettingsEntry *flag = lh_config_entry(c, "cpu-offloading");
    const LhSettingsEntry *number = lh_config_entry(c, "cpu-offloading-num-layers");
    bool offloads = false;
    uint64_t layers = 0;

    if (!lh_config_flag(c, "cpu-offloading", &offloads, error))
        return false;
    if (offloads && number == NULL)
        lh_config_note(c, flag, "it needs cpu_offloading_num_layers, which is not given");
    if (c->system->base != NULL && !offloads)
        return true;
    if (!lh_config_count(c, "cpu-offloading-num-layers", &layers, error))
        return false;
    if (layers > 0)
        lh_config_set_count(c, number, LH_CONFIG_WAY, "cpu_offloading_num_layers", layers);
    return true;
}

bool
lh_config_megatron_take_offload(LhConfig *c, GError **error)
{
    return take_optimizer(c, error) && take_activations(c, error);
}
