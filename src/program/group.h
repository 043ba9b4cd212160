/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of ranks, and the communicators that collectives and messages run on. A group is affine,
 * so a group of a million ranks costs as much as one of two. Equality of groups and of
 * communicators is defined here only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Ranks base + i * stride + j * outer_stride, i < count, j < outer_count (the inner index varies
 * fastest). The stride of a count of 1 is ignored. */
typedef struct {
    uint32_t base, stride, count;
    uint32_t outer_stride, outer_count; /* outer_count >= 1 */
} LhGroup;

/* The number of ranks of a group; its member at @position; the position of @rank, or UINT32_MAX. */
uint64_t lh_group_size(const LhGroup *group);
uint64_t lh_group_member(const LhGroup *group, uint64_t position);
uint32_t lh_group_position(const LhGroup *group, uint32_t rank);

/* Whether a group is not empty, and its members are distinct and below @ranks. */
bool lh_group_is_valid(const LhGroup *group, uint64_t ranks);

/* The canonical form of a valid group: two groups have the same members in the same order if and
 * only if their canonical forms are equal in every field. */
LhGroup lh_group_canonical(LhGroup group);

/*
 * A communicator: a number chosen by the program, and the canonical group of its ranks. As in NCCL,
 * all calls of a rank on one communicator are ordered, whatever their kind, and the k-th call of
 * one member matches the k-th call of every other.
 */
typedef struct {
    uint32_t number;
    LhGroup group;
} LhCommunicatorKey;

/* Total order; 0 means the same communicator. */
int lh_communicator_compare(const LhCommunicatorKey *a, const LhCommunicatorKey *b);
uint32_t lh_communicator_hash(const LhCommunicatorKey *key);

/* The same for hash tables with such keys (GHashFunc, GEqualFunc). */
unsigned lh_communicator_key_hash(const void *key);
int lh_communicator_key_equal(const void *a, const void *b);

/* Maps the ranks of a program into a larger one: rank r becomes base + stride * r. */
typedef struct {
    uint32_t base, stride;
} LhRankMap;

static inline uint32_t
lh_rank_map(LhRankMap map, uint32_t rank)
{
    return map.base + map.stride * rank;
}

LhGroup lh_group_map(LhRankMap map, LhGroup group);
