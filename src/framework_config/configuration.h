/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads configurations of training frameworks: files of Megatron-LM (arguments, or YAML),
 * torchtitan (TOML), DeepSpeed (JSON) and others. configuration_scenario.h applies them to a
 * scenario; common/config_words.h writes a way of training in the framework's own settings.
 *
 * Settings that affect neither time nor memory are known by name and counted; every other setting
 * that is not understood is listed.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Reads a file. Its ending selects the format: .toml, .json, .yaml or .yml, else arguments.
 * @variables: of char *, "NAME=VALUE", variables of a script; NULL: none. Caller frees. */
LhConfig *lh_config_load(const char *path, const GPtrArray *variables, GError **error);
/* The same for @text, as the contents of a file of this name. */
LhConfig *lh_config_parse(const char *file, const char *text, gsize length,
                          const GPtrArray *variables, GError **error);
void lh_config_free(LhConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhConfig, lh_config_free)

/* "Megatron-LM". */
const char *lh_config_system_name(const LhConfig *config);
