/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention in fp64 by its definition, row by row and pair by pair: the reference for the runtime's
 * reference. Slow and obvious; one thread.
 */
#pragma once

#include "reference/reference.h"

/* Computes o, lse, delta, dq, dk, dv and the sizes of their rows from the inputs. The outputs are
 * zero. */
void plain_reference_run(LhReference *reference);
