/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure of what a search found: which place computes which block of attention, and in which
 * round what the block needs arrives there.
 */
#pragma once

#include "synth/synth.h"

/* Draws the candidate of @synthesis, which has one, to @path, one that lh_figure_check_path()
 * allows. */
bool lh_synth_figure_draw(const LhSetup *setup, const LhSynthesis *synthesis, const char *path,
                          GError **error);
