/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations outside attention, in a program that states how they relate to it. Then its given
 * tensors come from projections only, every hidden output is a sum over all heads, and received
 * data is used. Also calls that compute the layer itself (LH_EFFECT_LAYER): they read what has been
 * written, and nothing is claimed about what they write; programs of attention have none.
 */
#pragma once

#include "verify/symbolic_cells.h"

/* Looks for such calls among @ops, before lh_boundary_begin(). */
void lh_boundary_scan(LhProof *proof, LhOpRange ops);
void lh_boundary_begin(LhSymbolicExec *cover);
bool lh_boundary_gives(const LhSymbolicExec *cover, const LhSlot *slot);
/* lh_boundary_overwrite: @cell of @region is about to be written. lh_boundary_arrive: it has
 * received data. */
void lh_boundary_overwrite(LhSymbolicExec *cover, uint32_t op, const LhRegion *region,
                           const LhCell *cell);
void lh_boundary_arrive(const LhSymbolicExec *cover, const LhRegion *region, LhCell *cell);
/* Adds what @op sends to @sum; @first starts the sum. */
bool lh_boundary_add(LhSymbolicExec *cover, uint32_t op, const LhRegion *region, bool first,
                     LhCell *sum, const LhCell *from);
void lh_boundary_end(LhSymbolicExec *cover);
void lh_boundary_check_output(LhSymbolicExec *cover, uint32_t rank, uint32_t slot,
                              const LhCell *cell);
bool lh_boundary_project_in(LhSymbolicExec *cover, uint32_t g);
bool lh_boundary_project_out(LhSymbolicExec *cover, uint32_t g);
bool lh_boundary_read(LhSymbolicExec *cover, uint32_t g);
bool lh_boundary_compute(LhSymbolicExec *cover, uint32_t g);
