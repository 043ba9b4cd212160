/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products of valid groups stay below 2^32, as members are ranks. */
#include "program/group.h"

#include <stddef.h>

uint64_t
lh_group_size(const LhGroup *group)
{
    return (uint64_t)group->count * group->outer_count;
}

uint64_t
lh_group_member(const LhGroup *group, uint64_t position)
{
    return group->base + position % group->count * group->stride +
           position / group->count * group->outer_stride;
}

uint32_t
lh_group_position(const LhGroup *group, uint32_t rank)
{
    for (uint64_t j = 0; j < group->outer_count; j++) {
        const uint64_t first = group->base + j * group->outer_stride;
        const uint64_t offset = rank - first;

        if (rank < first)
            continue;
        if (group->count == 1 ? offset != 0 : group->stride == 0 || offset % group->stride != 0)
            continue;
        if (group->count == 1 || offset / group->stride < group->count)
            return (uint32_t)(j * group->count + (group->count == 1 ? 0 : offset / group->stride));
    }
    return UINT32_MAX;
}

/* Whether no member occurs twice: the first common multiple of the strides in use lies outside. */
static bool
is_distinct(LhGroup group)
{
    uint32_t a = group.count > 1 ? group.stride : 0;
    uint32_t b = group.outer_count > 1 ? group.outer_stride : 0;
    const uint32_t stride = a, outer_stride = b;

    if ((group.count > 1 && stride == 0) || (group.outer_count > 1 && outer_stride == 0))
        return false;
    if (stride == 0 || outer_stride == 0)
        return true;
    while (b != 0) {
        const uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return outer_stride / a >= group.count || stride / a >= group.outer_count;
}

bool
lh_group_is_valid(const LhGroup *group, uint64_t ranks)
{
    const uint64_t inner = group->count > 1 ? (group->count - UINT64_C(1)) * group->stride : 0;
    const uint64_t outer =
        group->outer_count > 1 ? (group->outer_count - UINT64_C(1)) * group->outer_stride : 0;

    return group->count > 0 && group->outer_count > 0 && group->base < ranks && inner < ranks &&
           outer < ranks && group->base + inner + outer < ranks && is_distinct(*group);
}

LhGroup
lh_group_canonical(LhGroup group)
{
    if (group.count == 1) {
        group.stride = group.outer_stride;
        group.count = group.outer_count;
        group.outer_count = 1;
    } else if (group.outer_count > 1 && group.outer_stride == group.stride * group.count) {
        group.count *= group.outer_count;
        group.outer_count = 1;
    }
    if (group.outer_count == 1)
        group.outer_stride = 0;
    if (group.count == 1)
        group.stride = 0;
    return group;
}

/* The fields of a key as an array. */
typedef struct {
    uint32_t word[6];
} Words;

static Words
words_of(const LhCommunicatorKey *key)
{
    const LhGroup *group = &key->group;

    return (Words){ { key->number, group->base, group->stride, group->count, group->outer_stride,
                      group->outer_count } };
}

int
lh_communicator_compare(const LhCommunicatorKey *a, const LhCommunicatorKey *b)
{
    const Words x = words_of(a), y = words_of(b);

    for (unsigned i = 0; i < sizeof(x.word) / sizeof(x.word[0]); i++) {
        if (x.word[i] != y.word[i])
            return x.word[i] < y.word[i] ? -1 : 1;
    }
    return 0;
}

uint32_t
lh_communicator_hash(const LhCommunicatorKey *key)
{
    const Words words = words_of(key);
    uint32_t hash = 0;

    for (unsigned i = 0; i < sizeof(words.word) / sizeof(words.word[0]); i++) {
        hash = (hash ^ words.word[i]) * UINT32_C(0x9E3779B1);
        hash ^= hash >> 15;
    }
    return hash;
}

unsigned
lh_communicator_key_hash(const void *key)
{
    return lh_communicator_hash(key);
}

int
lh_communicator_key_equal(const void *a, const void *b)
{
    return lh_communicator_compare(a, b) == 0;
}

LhGroup
lh_group_map(LhRankMap map, LhGroup group)
{
    group.base = lh_rank_map(map, group.base);
    group.stride *= map.stride;
    group.outer_stride *= map.stride;
    return group;
}
