/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live view of a schedule search: progress on a terminal. Ctrl-C ends the search with what was
 * found.
 */
#pragma once

#include "synth/synth.h"

#define LH_SYNTH_BUDGET_MAX 1000000 /* largest value of the option --budget */

/* Runs lh_synth() with a progress line, replacing the task of @options. Caller frees. */
LhSynthesis *lh_synth_live(const LhSetup *setup, LhSynthOptions options, GError **error);
