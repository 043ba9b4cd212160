/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments as of github:NVIDIA/Megatron-LM@d98e8a64ddf34856e74b24714e3bedb2f5a39553
 * megatron/training/arguments.py; Muon's parameters and its layer-wise layout in
 * megatron/core/optimizer/emerging_optimizers.py and layer_wise_optimizer.py there.
 */
#include "framework_config/megatron/megatron_muon.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "step/muon/muon_params.h"

#include <string.h>

bool
lh_config_megatron_is_dist_muon(const LhConfig *c)
{
    const char *name = "adam";

    return lh_config_word(c, "optimizer", &name, NULL) && strcmp(name, "dist_muon") == 0;
}

/* Sets @field to the argument's word, one of @words; another one is not modelled. */
static bool
take_word(LhConfig *c, const char *name, const char *field, const char *const *words,
          GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, name);
    const char *word = NULL;

    if (entry == NULL)
        return true;
    if (!lh_config_word(c, name, &word, error))
        return false;
    if (lh_config_index(words, word) >= 0)
        lh_config_set(c, entry, LH_CONFIG_QUESTION, field, word);
    else
        lh_config_note(c, entry, "not modelled: %s %.40s: predicted as %s", name, word, words[0]);
    return true;
}

/* Sets @field to the argument's text, a number that the scenario reads. */
static void
take_number(LhConfig *c, const char *name, const char *field)
{
    const LhSettingsEntry *entry = lh_config_entry(c, name);

    if (entry != NULL)
        lh_config_set(c, entry, LH_CONFIG_QUESTION, field, lh_config_value(c, entry));
}

static bool
take_muon(LhConfig *c, const LhSettingsEntry *entry, GError **error)
{
    bool nesterov = false;

    lh_config_set(c, entry, LH_CONFIG_QUESTION, "optimizer", "muon");
    lh_config_note(c, entry,
                   "not modelled: the layer-wise layout: Megatron-LM reduces gradients to the rank "
                   "that has a matrix whole; here its pieces travel to that rank and back");
    if (!take_word(c, "muon-tp-mode", "muon_tp_mode", lh_muon_tp_mode_names, error) ||
        !take_word(c, "muon-scale-mode", "muon_scale_mode", lh_muon_scale_mode_names, error) ||
        !take_word(c, "muon-coefficient-type", "muon_coefficient_type", lh_muon_coefficient_names,
                   error) ||
        !lh_config_flag(c, "muon-nesterov", &nesterov, error))
        return false;
    take_number(c, "muon-num-ns-steps", "muon_num_ns_steps");
    take_number(c, "muon-momentum", "muon_momentum");
    take_number(c, "muon-extra-scale-factor", "muon_extra_scale_factor");
    if (nesterov)
        lh_config_set(c, lh_config_entry(c, "muon-nesterov"), LH_CONFIG_QUESTION, "muon_nesterov",
                      NULL);
    return true;
}

bool
lh_config_megatron_take_optimizer(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "optimizer");
    const char *name = "adam";

    if (!lh_config_word(c, "optimizer", &name, error))
        return false;
    if (strcmp(name, "muon") == 0 || strcmp(name, "dist_muon") == 0)
        return take_muon(c, entry, error);
    if (strcmp(name, "adam") != 0)
        lh_config_note(c, entry,
                       "not modelled: optimizer %.40s: the optimizer has the states of "
                       "Adam",
                       name);
    return true;
}
