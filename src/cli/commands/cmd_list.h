/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be named, for machines.
 */
#pragma once

#include "base/json/field.h"

/* Of the document longhaul.list/1. */
extern const LhField lh_list_fields[];
