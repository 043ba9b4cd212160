/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of settings, by name.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* The last setting of this name, or NULL. Null counts as absent. */
const LhSettingsEntry *lh_config_entry(const LhConfig *config, const char *name);

/* These read a setting, if it is there, and leave @value alone if it is not. */
bool lh_config_count(const LhConfig *config, const char *name, uint64_t *value, GError **error);
bool lh_config_flag(const LhConfig *config, const char *name, bool *value, GError **error);
bool lh_config_word(const LhConfig *config, const char *name, const char **value, GError **error);

/* Of @word in the NULL-terminated @words; -1: it is none of them. */
int lh_config_index(const char *const *words, const char *word);

/* The value of an argument is its first word: behind the last one of a program stands its script.
 */
const char *lh_config_value(const LhConfig *config, const LhSettingsEntry *entry);
