/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a way of training as lines of a framework's configuration file.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Adds a setting; @value NULL for a flag. Words are quoted where the syntax needs it. */
void lh_config_say(const LhConfig *config, GPtrArray *words, const char *path, LhSettingsKind kind,
                   const char *value);
void lh_config_say_count(const LhConfig *config, GPtrArray *words, const char *path,
                         uint64_t value);

/* Removes a setting, if the file has it. */
void lh_config_unsay(const LhConfig *config, GPtrArray *words, const char *path);

/* Adds a remark that is not a setting. */
void lh_config_remark(const LhConfig *config, GPtrArray *words, const char *text);

/* Whether the framework supports this way of training, apart from the schedule, which the scenario
 * names. */
bool lh_config_allows(const LhConfigSystem *system, const LhConfigWay *way);

/* The settings that @way needs, in the order of the file: of LhConfigWord *. Caller unrefs. */
GPtrArray *lh_config_words(const LhConfig *config, const LhConfigWay *way);
