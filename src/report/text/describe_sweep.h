/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep for people. */
#pragma once

#include "report/data/sweep_values.h"

/* Appends it in @format, a table or Markdown: a line for each point, and what is to say of them. */
void lh_describe_sweep(const LhSweep *sweep, LhFormat format, GString *out);

/* The pieces of it, of which pages are made: what is asked; which schedules win at how many points;
 * a row for each point (caller frees); what else there is to say. */
void lh_describe_sweep_question(const LhSweep *sweep, GString *out);
void lh_describe_sweep_answer(const LhSweep *sweep, GString *out);
LhTable *lh_describe_points(const LhSweep *sweep);
void lh_describe_sweep_rest(const LhSweep *sweep, GString *out);
