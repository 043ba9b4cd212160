/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of points: a line for each that is done, from which a sweep goes on, and which shards
 * put together.
 */
#pragma once

#include "compare/sweep_points.h"

/* "points.jsonl.3-of-8". Caller frees. */
char *lh_sweep_shard_file(const char *points_file, guint shard, guint shards);

/* Reads what the files of points have, and chooses the points that are looked at. */
bool lh_sweep_open_files(LhSweepRun *run, GError **error);

/* Writes lines of the points that are done, up to the first that is not. */
void lh_sweep_write_done(LhSweepRun *run);
