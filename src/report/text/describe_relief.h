/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that would make a case fit in memory, as text.
 */
#pragma once

#include "compare/memory_relief.h"

/* Appends "ring has the lowest peak: 103.2 GiB of 77.05 GiB, most of it logits (78 GiB). "; @what
 * is the text before the colon. */
void lh_describe_need(const LhReliefs *reliefs, const char *what, GString *out);

/* Appends "It would fit with --tensor-model-parallel-size 2 (61.2 GiB) or ...", or the closest
 * changes, and a newline. */
void lh_describe_reliefs(const LhReliefs *reliefs, GString *out);
