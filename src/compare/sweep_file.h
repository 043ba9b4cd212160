/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points files: one line per finished point. A sweep resumes from its file and merges those of
 * shards.
 */
#pragma once

#include "compare/sweep_points.h"

/* "points.jsonl.3-of-8". Caller frees. */
char *lh_sweep_shard_file(const char *points_file, guint shard, guint shards);

/* Reads the points files, and selects the points to run. */
bool lh_sweep_open_files(LhSweepRun *run, GError **error);

/* Writes the lines of finished points, up to the first unfinished one. */
void lh_sweep_write_done(LhSweepRun *run);
