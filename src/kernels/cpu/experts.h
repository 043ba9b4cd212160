/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows experts have, from what a router has said of each row (kernels/experts.c).
 */
#pragma once

#include "kernels/cpu/matrix.h"

/* Operand @operand of @call says of @choices choices, one after the other, the expert and the
 * weight; false if it cannot hold so many. */
bool lh_route(LhMatrix *route, const LhCall *call, unsigned operand, uint64_t choices);

/* Sets @firsts, of `experts + 1` numbers, to the first row of each expert, and behind them how many
 * there are; false if a choice is none of them. */
bool lh_route_firsts(const LhMatrix *route, uint64_t choices, uint32_t experts, uint64_t *firsts);
