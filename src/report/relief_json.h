/*
 * What would help where nothing fits in memory, as JSON.
 */
#pragma once

#include "base/jsonw.h"
#include "plan/relief.h"

/* Writes them as the member "relief"; null if @reliefs is NULL. */
void lh_reliefs_json(LhJsonWriter *w, const LhReliefs *reliefs);
