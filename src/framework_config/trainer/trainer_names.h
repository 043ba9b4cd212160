/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings that mean the same and that each program calls otherwise.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* The first of the settings @names, which mean the same, that is there; NULL: none. */
const char *lh_config_trainer_find_name(const LhConfig *c, const char *const *names);

/* Sets @error: what was found at the setting @name, and what is @allowed; returns false. */
bool lh_config_trainer_refuse(const LhConfig *c, const char *name, const char *found,
                              const char *allowed, GError **error);
