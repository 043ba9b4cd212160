/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of training systems are read here: what a file of Megatron-LM (arguments, or
 * YAML), torchtitan (TOML) or DeepSpeed (JSON) asks for. configuration_scenario.h puts it into the
 * fields of a scenario, common/config_words.h puts a way of training into that system's words.
 *
 * Settings that no time and no memory depends on are known by name and counted; every other one
 * that is not understood is listed.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Reads a file; its ending says of which system it is: .toml, .json, .yaml or .yml, else arguments.
 * @variables: of char *, "NAME=VALUE", what variables of a script are; NULL: none. Caller frees. */
LhConfig *lh_config_load(const char *path, const GPtrArray *variables, GError **error);
/* As if it stood in a file of this name. */
LhConfig *lh_config_parse(const char *file, const char *text, gsize length,
                          const GPtrArray *variables, GError **error);
void lh_config_free(LhConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhConfig, lh_config_free)

/* "Megatron-LM". */
const char *lh_config_system_name(const LhConfig *config);
