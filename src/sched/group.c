/* Rank groups, and what a collective over one sends. */
#include "sched/ir.h"

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

uint64_t
lh_collective_bytes_sent(LhCollectiveKind kind, const LhGroup *group, uint32_t rank,
                         uint64_t shard_bytes)
{
    const uint64_t members = lh_group_size(group);

    switch (kind) {
    case LH_COLL_ALL_REDUCE:
        return 2 * (members - 1) * shard_bytes;
    case LH_COLL_ALL_TO_ALL:
        return shard_bytes / members * (members - 1);
    case LH_COLL_BROADCAST:
        return lh_group_position(group, rank) + 1 < members ? shard_bytes : 0;
    default:
        return (members - 1) * shard_bytes;
    }
}
