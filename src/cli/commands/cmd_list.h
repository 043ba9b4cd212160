/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings of known names, for programs.
 */
#pragma once

#include "base/json/field.h"

/* Fields of the document longhaul.list/1. */
extern const LhField lh_list_fields[];
