/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of attention2d-o, and the parameters that determine its buffers.
 */
#pragma once

#include "sched/common/grid_hops.h"

/* The number of buffers of a rank for visitors: two, or fewer in short rows. */
uint32_t lh_attention2d_o_buffers(LhGrid grid);

/* Whether visitors process the keys of one rank at a time: the kernel of the paper is called
 * once for each block of keys in a column. */
bool lh_attention2d_o_apart(const LhProgramParams *p, LhGrid grid);

uint64_t lh_attention2d_o_peak_bytes(const LhProgramParams *p, uint32_t rank);
