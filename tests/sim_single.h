/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of one collective, optionally with a late rank. */
#pragma once

#include "sim_world.h"

#define MEMBERS_MAX 640

/* One collective over the members of a group; they arrive together unless a time is set. */
typedef struct {
    Line lines[MEMBERS_MAX + 1];
    Script script;
} Single;

/* Makes rank @late arrive at @late_ps, if not 0. */
static inline void
single_init(Single *s, LhCollectiveKind kind, LhGroup group, uint64_t bytes, uint32_t late,
            LhTime late_ps)
{
    const uint64_t size = lh_group_size(&group);

    ck_assert_uint_le(size, MEMBERS_MAX);
    s->script = (Script){ .lines = s->lines };
    for (uint32_t i = 0; i < size; i++) {
        const uint32_t rank = (uint32_t)lh_group_member(&group, i);
        const bool waits = late_ps > 0 && rank == late;

        if (waits)
            s->lines[s->script.count++] =
                (Line){ .rank = rank, .kind = LH_OP_COMPUTE, .time_ps = late_ps };
        s->lines[s->script.count++] = (Line){ .rank = rank,
                                              .kind = LH_OP_COLLECTIVE,
                                              .collective = kind,
                                              .ranks = group,
                                              .bytes = bytes,
                                              .after = { waits ? 1 : 0 } };
    }
}

static inline LhGroup
first_ranks(uint32_t count)
{
    return (LhGroup){ 0, 1, count, 0, 1 };
}
