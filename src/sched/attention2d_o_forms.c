/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/attention2d_o_forms.h"

uint32_t
lh_attention2d_o_buffers(LhGrid grid)
{
    return MIN(grid.columns - 1, 2);
}

bool
lh_attention2d_o_apart(const LhProgramParams *p, LhGrid grid)
{
    return lh_pass_published(p) && grid.rows > 1 && grid.columns > 1;
}

/* The fp32 sum of o, the results of one or two blocks, the keys of the column, and b = min(2,
 * Pc-1) buffers of queries and of partial results. */
static uint64_t
attention2d_o_forward_buffers(const LhProgramParams *p, const LhPassSizes *z, LhGrid grid)
{
    const uint64_t block = z->q + z->s, blocks = lh_attention2d_o_apart(p, grid) ? 2 : 1;
    const uint64_t keys = grid.rows > 1 ? grid.rows * z->kv : 0;

    return z->q / z->e * 4 + z->s + blocks * block +
           lh_attention2d_o_buffers(grid) * (z->q + block) + keys;
}

/* The fp32 sums of dq and of dk, dv of the column, the keys of the column, and communication
 * buffers. */
static uint64_t
attention2d_o_backward_buffers(const LhPassSizes *z, LhGrid grid, bool gather_delta)
{
    const uint64_t buffers = lh_attention2d_o_buffers(grid),
                   wire = lh_grid_rounds(z) ? 2 : 1; /* sent, received */
    const uint64_t dq_sum = z->q / z->e * 4;
    const uint64_t third = gather_delta ? z->s : z->q;
    uint64_t bytes = dq_sum + grid.rows * (z->kv / z->e * 4);

    if (grid.rows > 1)
        bytes += grid.rows * z->kv + wire * z->dkv;
    if (grid.columns > 1)
        bytes += buffers * (2 * z->q + third + z->s) + (lh_grid_rounds(z) ? 1 : buffers) * dq_sum +
                 wire * z->dq + (gather_delta ? z->s : 0);
    return bytes;
}

uint64_t
lh_attention2d_o_peak_bytes(const LhProgramParams *p, uint32_t rank)
{
    const LhPassSizes z = lh_pass_sizes(p, 0);
    const LhGrid grid = lh_grid_of(p);
    const uint64_t kt = lh_grid_moves(p, grid, rank) ? z.kv : 0;

    return lh_pass_peak_bytes(
        p, kt + attention2d_o_forward_buffers(p, &z, grid),
        kt + attention2d_o_backward_buffers(&z, grid, lh_grid_gather_delta(p)));
}
