/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory the weights of a setup need, and what a rank may hold beside them.
 */
#pragma once

#include "scenario/setup.h"

/* Bytes of the model's weights in the element type of the run; 0: not known, for a program of its
 * own or heads that are not the model's. UINT64_MAX: at least so many. */
uint64_t lh_setup_weight_bytes(const LhSetup *setup);

/* The least of them that one of the ranks holds, however they are cut. */
uint64_t lh_setup_weight_bytes_per_rank(const LhSetup *setup);

/*
 * What a rank may hold. Of a program that accounts for everything: what is usable of a GPU's
 * memory. Of attention alone, of which only what surely does not fit is refused: all of it but the
 * share above. 1 if nothing is left; 0: no limit, where the device does not count.
 */
uint64_t lh_setup_memory_limit_bytes(const LhSetup *setup, const LhProgram *program);
