/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration says: fields of the scenario, and values of the framework's file.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* What a setting says of a scenario. */
typedef struct {
    unsigned part; /* LhConfigParts */
    const char *field;
    char *value; /* NULL: a flag */
    const LhSettingsEntry *entry;
} LhConfigSetting;

/* Sets field @field of the scenario to @value (NULL: a flag) for the sake of @entry. */
void lh_config_set(LhConfig *config, const LhSettingsEntry *entry, unsigned part, const char *field,
                   const char *value);
void lh_config_set_count(LhConfig *config, const LhSettingsEntry *entry, unsigned part,
                         const char *field, uint64_t value);

/* A value of the framework's file, "ddp.overlap", is @text; true if it was another. */
bool lh_config_set_framework(LhConfig *config, const char *key, const char *text);

/* Of LhConfigSetting *. */
void lh_config_setting_free(gpointer data);
