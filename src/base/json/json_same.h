/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two JSON documents and finds their first difference.
 */
#pragma once

#include "base/json/json.h"

/* A difference: the path, and the first bytes of both values. Owned. */
typedef struct {
    char *path, *a, *b;
} LhJsonDifference;

/*
 * Whether two documents have the same values under the same keys in the same order. White space and
 * the notation of numbers are ignored, as are paths for which @counts is false. If they differ,
 * sets @difference to the first difference.
 */
bool lh_json_same(const LhJson *a, const LhJson *b, bool (*counts)(const char *path),
                  LhJsonDifference *difference);
void lh_json_difference_clear(LhJsonDifference *difference);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhJsonDifference, lh_json_difference_clear)
