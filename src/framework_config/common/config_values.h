/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads values of settings by name.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* The last setting of this name, or NULL. A null value counts as absent. */
const LhSettingsEntry *lh_config_entry(const LhConfig *config, const char *name);

/* Read a setting if it exists; else leave @value unchanged. */
bool lh_config_count(const LhConfig *config, const char *name, uint64_t *value, GError **error);
bool lh_config_flag(const LhConfig *config, const char *name, bool *value, GError **error);
bool lh_config_word(const LhConfig *config, const char *name, const char **value, GError **error);

/* Index of @word in the NULL-terminated @words; -1: not found. */
int lh_config_index(const char *const *words, const char *word);

/* The value of an argument is its first word: the last argument may be followed by a script. */
const char *lh_config_value(const LhConfig *config, const LhSettingsEntry *entry);
