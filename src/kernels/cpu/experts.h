/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of each expert, from the router's choices (kernels/experts.c).
 */
#pragma once

#include "kernels/cpu/matrix.h"

/*
 * Sets @route to operand @operand of @call, which holds expert and weight of each of @choices
 * choices. Returns false if the operand is too small.
 */
bool lh_route(LhMatrix *route, const LhCall *call, unsigned operand, uint64_t choices);

/*
 * Sets @firsts, of `experts + 1` numbers, to the first row of each expert and, last, the number of
 * all rows. Returns false if a choice is not an expert.
 */
bool lh_route_firsts(const LhMatrix *route, uint64_t choices, uint32_t experts, uint64_t *firsts);
