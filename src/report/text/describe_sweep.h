/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep for people. */
#pragma once

#include "report/data/sweep_values.h"

/* Appends the sweep in @format, a table or Markdown: a row per point, and a summary. */
void lh_describe_sweep(const LhSweep *sweep, LhFormat format, GString *out);

/* Parts of it, used by pages: the query; the winners and their numbers of points; a row per point
 * (caller frees); the rest of the summary. */
void lh_describe_sweep_question(const LhSweep *sweep, GString *out);
void lh_describe_sweep_answer(const LhSweep *sweep, GString *out);
LhTable *lh_describe_points(const LhSweep *sweep);
void lh_describe_sweep_rest(const LhSweep *sweep, GString *out);
