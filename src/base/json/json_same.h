/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether two JSON documents say the same, and where they differ.
 */
#pragma once

#include "base/json/json.h"

/* Where two documents differ, and the values there as texts, the first bytes of them. Owned. */
typedef struct {
    char *path, *a, *b;
} LhJsonDifference;

/*
 * Whether two documents have the same values under the same keys in the same order; white space
 * does not count, nor how a number is written, nor what @counts says so of. If not, the first
 * @difference, by path.
 */
bool lh_json_same(const LhJson *a, const LhJson *b, bool (*counts)(const char *path),
                  LhJsonDifference *difference);
void lh_json_difference_clear(LhJsonDifference *difference);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhJsonDifference, lh_json_difference_clear)
