/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way of training in a system's words: lines of its file.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* A setting that the way needs: @value NULL for a flag. Words in quotes where syntax has them. */
void lh_config_say(const LhConfig *config, GPtrArray *words, const char *path, LhSettingsKind kind,
                   const char *value);
void lh_config_say_count(const LhConfig *config, GPtrArray *words, const char *path,
                         uint64_t value);

/* A setting that must not be there, if it is. */
void lh_config_unsay(const LhConfig *config, GPtrArray *words, const char *path);

/* What no setting says. */
void lh_config_remark(const LhConfig *config, GPtrArray *words, const char *text);

/* Whether the system can be told to do this: everything but the schedule, which the scenario names.
 */
bool lh_config_allows(const LhConfigSystem *system, const LhConfigWay *way);

/* What the file has to say for @way, in its order: of LhConfigWord *. Caller unrefs. */
GPtrArray *lh_config_words(const LhConfig *config, const LhConfigWay *way);
