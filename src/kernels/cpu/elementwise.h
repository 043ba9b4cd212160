/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels that touch every element once have in common.
 */
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/rows.h"

/*
 * target = source, or with @add target += source, element by element of the rows that the call is
 * about, each rounded once to fp32 and once to target's storage. Reference and fast version: the
 * same bits on all levels. Without @add, statistics behind the elements are copied as well. With
 * args->reversed the parts of the source are taken from the last to the first.
 */
enum lh_status lh_elements_add(const LhCall *call, bool add);

/* sum = the terms, of which there is one at least, added up in fp32 in their order and rounded once
 * to @storage; the same bits on all levels. @sum is none of them. */
void lh_elements_sum(const unsigned char *const *terms, uint32_t count, enum lh_storage storage,
                     uint64_t elements, unsigned char *sum);

/* to = from, of the call's key rows, rounded likewise. */
void lh_keys_copy(const LhCall *call, LhRows from, LhRows to);

/* Bytes of fp32 statistics behind the elements of a part: m and l, lse, or none. */
uint64_t lh_stats_bytes(const LhCall *call, unsigned operand);

/* What a row of the result is made of: target * what it held + source * the other's. A factor of 0
 * means that the row is not read. */
typedef struct {
    double target, source;
} LhFactors;

/* Factors of a row; updates the row's statistics. */
typedef LhFactors (*LhWeigh)(const LhCall *call, uint64_t sequence, uint64_t row, uint32_t head);

/* Rows of q's shape of two operands, combined in fp64 or fast, in fp32. */
enum lh_status lh_rows_combine_reference(const LhCall *call, unsigned source, unsigned target,
                                         LhWeigh weigh);
enum lh_status lh_rows_combine(const LhCall *call, unsigned source, unsigned target, LhWeigh weigh);
