/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/configuration_systems.h"

#include "framework_config/common/config_names.h"
#include "framework_config/deepspeed/deepspeed.h"
#include "framework_config/megatron/megatron.h"
#include "framework_config/nemo/nemo.h"
#include "framework_config/torchtitan/torchtitan.h"
#include "framework_config/trainer/trainer.h"

#include <string.h>

const LhConfigSystem *const lh_config_systems[] = { &lh_config_megatron,  &lh_config_torchtitan,
                                                    &lh_config_deepspeed, &lh_config_trainer,
                                                    &lh_config_nemo,      NULL };

/* Whether a command line sets members of a tree, "model.micro_batch_size=1". */
static bool
has_tree(const LhSettingsFile *entries)
{
    for (guint i = 0; i < entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);

        if (strchr(entry->path, '.') != NULL)
            return true;
    }
    return false;
}

const LhConfigSystem *
lh_config_system_of(const LhSettingsFile *entries)
{
    const LhConfigSystem *const systems[] = { &lh_config_megatron, &lh_config_trainer,
                                              &lh_config_nemo, &lh_config_torchtitan };
    guint known[] = { 0, 0, 0, 0 }, most = 0;

    for (guint i = 0; i < entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);

        for (guint k = 0; k < G_N_ELEMENTS(systems); k++) {
            g_autofree char *name = lh_config_name_of(systems[k], entry->path);

            if (systems[k] == &lh_config_megatron && strcmp(name, "deepspeed") == 0 &&
                entry->values->len > 0)
                continue; /* a flag of Megatron-LM, but a file elsewhere */
            known[k] += lh_config_find_key(systems[k], name) != NULL ? 1 : 0;
        }
    }
    if (!has_tree(entries)) /* NeMo and torchtitan only have such settings */
        known[2] = known[3] = 0;
    for (guint k = 1; k < G_N_ELEMENTS(systems); k++)
        most = known[k] > known[most] ? k : most;
    return systems[most];
}
