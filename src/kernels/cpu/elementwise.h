/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of the elementwise kernels.
 */
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/rows.h"

/*
 * Computes target = source, or with @add target += source, for all elements of the call's rows.
 * Rounds each once to fp32 and once to target's storage. Reference and fast version at once:
 * bitwise equal on all levels. Without @add, statistics after the elements are copied as well. With
 * args->reversed the source's parts are read from the last to the first.
 */
enum lh_status lh_elements_add(const LhCall *call, bool add);

/*
 * Computes sum = the terms (at least one), added in fp32 in their order and rounded once to
 * @storage; bitwise equal on all levels. @sum must not be one of the terms.
 */
void lh_elements_sum(const unsigned char *const *terms, uint32_t count, enum lh_storage storage,
                     uint64_t elements, unsigned char *sum);

/* Copies the call's key rows, rounded as above. */
void lh_keys_copy(const LhCall *call, LhRows from, LhRows to);

/* Bytes of fp32 statistics after the elements of a part: m and l, lse, or none. */
uint64_t lh_stats_bytes(const LhCall *call, unsigned operand);

/*
 * Factors of a result row: target * its old value + source * the source row. A row with factor 0 is
 * not read.
 */
typedef struct {
    double target, source;
} LhFactors;

/* Returns the factors of a row and updates its statistics. */
typedef LhFactors (*LhWeigh)(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head);

/* Combine rows of q's shape of two operands, in fp64 or, fast, in fp32. */
enum lh_status lh_rows_combine_reference(const LhCall *call, unsigned source, unsigned target,
                                         LhWeigh weigh);
enum lh_status lh_rows_combine(const LhCall *call, unsigned source, unsigned target, LhWeigh weigh);
