/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings that programs call by different names.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* The first of the equivalent settings @names that exists; NULL: none. */
const char *lh_config_trainer_find_name(const LhConfig *c, const char *const *names);

/* Sets @error with the value of the setting @name and what is @allowed; returns false. */
bool lh_config_trainer_refuse(const LhConfig *c, const char *name, const char *found,
                              const char *allowed, GError **error);
