/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results of reading a configuration: fields of the scenario, and values of the framework file.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* A field of the scenario that a setting sets. */
typedef struct {
    unsigned part; /* LhConfigParts */
    const char *field;
    char *value; /* NULL: a flag */
    const LhSettingsEntry *entry;
} LhConfigSetting;

/* Sets field @field of the scenario to @value (NULL: a flag), on behalf of @entry. */
void lh_config_set(LhConfig *config, const LhSettingsEntry *entry, unsigned part, const char *field,
                   const char *value);
void lh_config_set_count(LhConfig *config, const LhSettingsEntry *entry, unsigned part,
                         const char *field, uint64_t value);

/* Sets a value of the framework file, such as "ddp.overlap"; true if this changes it. */
bool lh_config_set_framework(LhConfig *config, const char *key, const char *text);

/* Frees an LhConfigSetting *. */
void lh_config_setting_free(gpointer data);
