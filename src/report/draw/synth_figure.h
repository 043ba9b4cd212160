/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure of a search result: the place that computes each block of attention, and the round in
 * which the block's inputs arrive there.
 */
#pragma once

#include "synth/synth.h"

/* Draws the candidate of @synthesis, which must have one, to @path, which lh_figure_check_path()
 * accepts. */
bool lh_synth_figure_draw(const LhSetup *setup, const LhSynthesis *synthesis, const char *path,
                          GError **error);
