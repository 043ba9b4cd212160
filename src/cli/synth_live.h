/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A search for a schedule as a person sees it: on a terminal, how far it is; Ctrl-C ends it with
 * what is found.
 */
#pragma once

#include "synth/synth.h"

#define LH_SYNTH_BUDGET_MAX 1000000 /* of an option */

/* lh_synth() with progress; whom @options tells of it is this. Caller frees. */
LhSynthesis *lh_synth_live(const LhSetup *setup, LhSynthOptions options, GError **error);
