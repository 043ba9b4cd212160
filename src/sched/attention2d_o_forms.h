/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closed forms of attention2d-o, and what its buffers follow from.
 */
#pragma once

#include "sched/common/grid_hops.h"

/* How many buffers a rank has for what visits it: two, or fewer in short rows. */
uint32_t lh_attention2d_o_buffers(LhGrid grid);

/* Whether visitors meet the keys of one rank at a time: the kernel of the paper is called once for
 * each block of keys that a column has. */
bool lh_attention2d_o_apart(const LhProgramParams *p, LhGrid grid);

uint64_t lh_attention2d_o_peak_bytes(const LhProgramParams *p, uint32_t rank);
