/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would help where nothing fits in memory, in words.
 */
#pragma once

#include "compare/memory_relief.h"

/* Appends "ring needs least: 103.2 GiB of 77.05 GiB, most of it logits (78 GiB). "; @what is what
 * needs that: "ring needs least". */
void lh_describe_need(const LhReliefs *reliefs, const char *what, GString *out);

/* Appends "It would fit with --tensor-model-parallel-size 2 (61.2 GiB) or ...", or what comes
 * nearest, and the end of line. */
void lh_describe_reliefs(const LhReliefs *reliefs, GString *out);
