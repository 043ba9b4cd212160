/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of ranks, and the communicators that collectives and messages run on. A group is affine,
 * so that one of a million ranks costs as much as one of two. What makes two groups the same group,
 * and two calls calls of one communicator, is said here and nowhere else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Ranks base + i * stride + j * outer_stride, i < count, j < outer_count (the inner index is the
 * fastest). A stride that is never taken, of a count of 1, means nothing. */
typedef struct {
    uint32_t base, stride, count;
    uint32_t outer_stride, outer_count; /* outer_count >= 1 */
} LhGroup;

/* How many ranks a group has; its member at @position; the position of @rank, or UINT32_MAX. */
uint64_t lh_group_size(const LhGroup *group);
uint64_t lh_group_member(const LhGroup *group, uint64_t position);
uint32_t lh_group_position(const LhGroup *group, uint32_t rank);

/* Whether it has members, all of them are below @ranks, and none is named twice. */
bool lh_group_is_valid(const LhGroup *group, uint64_t ranks);

/* The one way to write a valid group: two groups have the same members in the same order if and
 * only if their canonical forms are equal in every field. */
LhGroup lh_group_canonical(LhGroup group);

/*
 * A communicator is a number, which the program chooses, and the ranks it spans, canonical. As in
 * NCCL, the calls that a rank makes on one communicator have one order, whatever their kind, and
 * the k-th call of one member meets the k-th of every other.
 */
typedef struct {
    uint32_t number;
    LhGroup group;
} LhCommunicatorKey;

/* A total order; 0 for the same communicator. */
int lh_communicator_compare(const LhCommunicatorKey *a, const LhCommunicatorKey *b);
uint32_t lh_communicator_hash(const LhCommunicatorKey *key);

/* Places the ranks of a program among those of a larger one: rank r stands at base + stride * r. */
typedef struct {
    uint32_t base, stride;
} LhRankMap;

static inline uint32_t
lh_rank_map(LhRankMap map, uint32_t rank)
{
    return map.base + map.stride * rank;
}

LhGroup lh_group_map(LhRankMap map, LhGroup group);
