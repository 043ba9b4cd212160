/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would help where nothing fits in memory, as JSON.
 */
#pragma once

#include "base/json/json_writer.h"
#include "compare/memory_relief.h"

/* Writes them as the member "relief"; null if @reliefs is NULL. */
void lh_reliefs_json(LhJsonWriter *w, const LhReliefs *reliefs);
