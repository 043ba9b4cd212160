/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of training systems, for people: settings that are read, and configurations as
 * settings of their files. */
#pragma once

#include "planner/baseline_config.h"
#include "report/base/table.h"

#include <glib.h>

/* Appends "FILE: WHAT: a (line 3), b (line 7)", without a newline; nothing without entries. */
void lh_describe_entries(const LhConfig *config, const GPtrArray *entries, const char *what,
                         GString *out);

/* Appends what was read, and every warning, as lines. */
void lh_describe_config(const LhConfig *config, GString *out);

/* Appends how far the file's own configuration, on @gpus GPUs, is from the fastest, which takes
 * @best_s (0: none), as lines. */
void lh_describe_start(const LhConfig *config, const LhBaselineConfig *start, uint32_t gpus,
                       double best_s, uint64_t limit_bytes, GString *out);

/* Appends the settings of the file for point @point, as a block of lines. */
void lh_describe_words(const LhConfig *config, const LhPlanSpace *space, guint point,
                       LhFormat format, GString *out);
