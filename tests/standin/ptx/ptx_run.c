/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs kernels: blocks in a random order, the warps of a block in turns of random length. Lanes of
 * a warp at the same address continue together; of several groups the one at the lowest address
 * runs first, so that they reconverge.
 */
#include "ptx_private.h"

#include <fenv.h>
#include <glib.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTRUCTIONS_MAX_DEFAULT (UINT64_C(1) << 40)
#define TURN_MAX 256 /* instructions of a short turn */

void
ptx_stop(ptx_warp *warp, const ptx_instruction *in, const char *format, ...)
{
    ptx_block *block = warp->block;
    va_list list;
    int length;

    if (block->failed)
        return;
    block->failed = true;
    length = snprintf(
        block->error, 256, "%.80s, PTX line %u, block %u,%u,%u, warp %u: ", block->kernel->name,
        in != NULL ? in->line : 0, block->index[0], block->index[1], block->index[2], warp->index);
    va_start(list, format);
    vsnprintf(block->error + length, 256 - (size_t)length, format, list);
    va_end(list);
}

/* ---- instructions without data ---- */

void
ptx_nothing(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    (void)warp;
    (void)in;
    (void)mask;
}

/* The first lane gives the duration. */
void
ptx_nanosleep(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    uint64_t *timer = warp->block->launch->timer_ns;

    if (timer != NULL)
        *timer += ((const uint32_t *)ptx_at(warp, in->a))[__builtin_ctz(mask)];
}

void
ptx_trap(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    ptx_stop(warp, in, "trap, by the lanes 0x%08x", mask);
}

void
ptx_no_body(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    ptx_stop(warp, in, "calls a function that has no body, by the lanes 0x%08x", mask);
}

/* Time advances with instructions, so that waiting for it ends. */
void
ptx_clock(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    uint64_t *timer = in->mode == PTX_CLOCK_GLOBAL ? warp->block->launch->timer_ns : NULL;
    const uint64_t now = timer != NULL ? (*timer)++ : ++warp->block->clock * 32;

    if (in->d == PTX_NONE)
        return;
    PTX_EACH_LANE(lane, mask)
    {
        if (in->width == 4)
            ((uint32_t *)ptx_at(warp, in->d))[lane] = (uint32_t)now;
        else
            ((uint64_t *)ptx_at(warp, in->d))[lane] = now;
    }
}

void
ptx_to_window(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint64_t *a = ptx_at(warp, in->a);
    uint64_t *d = ptx_at(warp, in->d);

    PTX_EACH_LANE(lane, mask)
    {
        if (a[lane] >> PTX_WINDOW_SHIFT != in->immediate) {
            ptx_stop(warp, in, "lane %u: 0x%llx is no address of that space", lane,
                     (unsigned long long)a[lane]);
            return;
        }
        d[lane] = a[lane] & ((UINT64_C(1) << PTX_WINDOW_SHIFT) - 1);
    }
}

/* ---- groups of lanes ---- */

static void
group_new(ptx_warp *warp, uint32_t pc, uint32_t mask, enum ptx_state state)
{
    warp->groups[warp->groups_count++] =
        (ptx_group){ .pc = pc, .mask = mask, .state = (uint8_t)state };
}

/* Returns the group to run, merged with others at its address; NULL if all wait or have ended. */
static ptx_group *
choose(ptx_warp *warp)
{
    ptx_group *chosen = NULL;
    uint32_t kept = 0;
    ptx_group first;

    for (uint32_t i = 0; i < warp->groups_count; i++) {
        ptx_group *group = &warp->groups[i];

        if (group->state == PTX_READY && (chosen == NULL || group->pc < chosen->pc))
            chosen = group;
    }
    if (chosen == NULL)
        return NULL;
    first = *chosen;
    first.mask = 0;
    for (uint32_t i = 0; i < warp->groups_count; i++) {
        const ptx_group group = warp->groups[i];

        if (group.state != PTX_WAITS_BARRIER && group.pc == first.pc)
            first.mask |= group.mask;
        else
            warp->groups[kept++] = group;
    }
    warp->groups[kept] = warp->groups[0];
    warp->groups[0] = first;
    warp->groups_count = kept + 1;
    return &warp->groups[0];
}

/* ---- steps ---- */

static void
branch(ptx_warp *warp, ptx_group *group, uint32_t target, uint32_t taken)
{
    if (taken == group->mask) {
        group->pc = target;
        return;
    }
    group->pc++;
    if (taken == 0)
        return;
    group->mask &= ~taken;
    group_new(warp, target, taken, PTX_READY);
}

static void
branch_by_table(ptx_warp *warp, const ptx_instruction *in, ptx_group *group, uint32_t taken)
{
    const uint32_t *targets = warp->block->kernel->operands + in->immediate;
    const uint32_t *a = ptx_at(warp, in->a);
    uint32_t left = taken;

    while (left != 0) {
        const uint32_t index = a[ptx_first_lane(left)];
        uint32_t same = 0;

        if (index >= in->immediate2) {
            ptx_stop(warp, in, "target %u of a table of %u", index, (uint32_t)in->immediate2);
            return;
        }
        PTX_EACH_LANE(lane, left)
        {
            same |= (uint32_t)(a[lane] == index) << lane;
        }
        group_new(warp, targets[index], same, PTX_READY);
        left &= ~same;
    }
    group->mask &= ~taken;
    group->pc++;
    if (group->mask == 0)
        *group = warp->groups[--warp->groups_count];
}

static void
end_lanes(ptx_warp *warp, const ptx_instruction *in, ptx_group *group, uint32_t mask)
{
    if (warp->copies_count > 0 && !ptx_copies_landed(warp, mask)) {
        ptx_stop(warp, in, "ends with a cp.async on its way");
        return;
    }
    warp->live &= ~mask;
    group->mask &= ~mask;
    group->pc++;
    if (group->mask == 0)
        *group = warp->groups[--warp->groups_count];
}

/* Moves the lanes that need not wait past the instruction. */
static void
split_waiting(ptx_warp *warp, ptx_group *group, uint32_t waiting)
{
    const uint32_t pc = group->pc;

    group->pc++;
    if (waiting == 0)
        return;
    group->mask &= ~waiting;
    if (group->mask == 0)
        *group = warp->groups[--warp->groups_count];
    group_new(warp, pc, waiting, PTX_WAITS_LANES);
}

/* Releases the lanes with the same member mask as the first one, if all members have arrived. */
static bool
members_here(ptx_warp *warp, const ptx_instruction *in, uint32_t left, uint32_t *same)
{
    const uint32_t *members = ptx_at(warp, in->f);
    const uint32_t first = ptx_first_lane(left), mask = members[first];

    *same = 0;
    PTX_EACH_LANE(lane, left)
    {
        *same |= (uint32_t)(members[lane] == mask) << lane;
    }
    if ((*same & ~mask) != 0) {
        ptx_stop(warp, in, "lane %u is not in its own mask 0x%08x", ptx_first_lane(*same & ~mask),
                 mask);
        return false;
    }
    if ((mask & ~warp->there) != 0 && mask != PTX_ALL_LANES) {
        ptx_stop(warp, in, "the mask 0x%08x names lanes that the block does not have", mask);
        return false;
    }
    return *same == (mask & warp->live);
}

static void
together(ptx_warp *warp, const ptx_instruction *in, ptx_group *group, uint32_t active)
{
    uint32_t left = active, waiting = 0;

    if (in->aligned) {
        if (warp->live != PTX_ALL_LANES) {
            ptx_stop(warp, in, "by a warp of which only 0x%08x are there", warp->live);
            return;
        }
        if (active == PTX_ALL_LANES)
            in->run(warp, in, active);
        else
            waiting = active;
        split_waiting(warp, group, waiting);
        return;
    }
    while (left != 0 && !warp->block->failed) {
        uint32_t same;

        if (members_here(warp, in, left, &same))
            in->run(warp, in, same);
        else
            waiting |= same;
        left &= ~same;
    }
    split_waiting(warp, group, waiting);
}

/* ---- barriers ---- */

static uint32_t
live_threads(const ptx_block *block)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < block->warps_count; i++)
        count += ptx_lanes_count(block->warps[i].live);
    return count;
}

/* Moves lanes that wait at a barrier past it. */
static void
release(ptx_warp *warp, uint32_t id, const ptx_barrier *barrier)
{
    for (uint32_t i = 0; i < warp->groups_count; i++) {
        ptx_group *group = &warp->groups[i];
        const ptx_instruction *in = &warp->block->kernel->code[group->pc];

        if (group->state != PTX_WAITS_BARRIER || group->barrier != id)
            continue;
        ptx_sync_leave(warp, barrier, group->mask);
        if (in->mode == PTX_BARRIER_RED && in->d != PTX_NONE) {
            uint32_t *d = ptx_at(warp, in->d);

            if (in->vector != 0)
                *d = (*d & ~group->mask) | (barrier->result[in->vector] != 0 ? group->mask : 0);
            else
                PTX_EACH_LANE(lane, group->mask)
                {
                    d[lane] = barrier->result[0];
                }
        }
        group->state = PTX_READY;
        group->pc++;
    }
}

static uint32_t
waiting_at(const ptx_block *block, uint32_t id)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < block->warps_count; i++)
        for (uint32_t k = 0; k < block->warps[i].groups_count; k++) {
            const ptx_group *group = &block->warps[i].groups[k];

            if (group->state == PTX_WAITS_BARRIER && group->barrier == id)
                count += ptx_lanes_count(group->mask);
        }
    return count;
}

/* Opens the barrier if all have arrived. */
static bool
barrier_try(ptx_block *block, uint32_t id)
{
    ptx_barrier *barrier = &block->barriers[id];

    if (!barrier->used)
        return false;
    if (barrier->expected == 0 ? waiting_at(block, id) < live_threads(block)
                               : barrier->arrived < barrier->expected)
        return false;
    if (barrier->expected == 0)
        ptx_sync_block(block);
    for (uint32_t i = 0; i < block->warps_count; i++)
        release(&block->warps[i], id, barrier);
    memset(barrier, 0, sizeof(*barrier));
    return true;
}

static void
reduce_at_barrier(ptx_warp *warp, const ptx_instruction *in, ptx_barrier *barrier, uint32_t mask)
{
    const uint32_t *p = ptx_at(warp, in->c);
    const uint32_t yes = (in->negated ? ~*p : *p) & mask;

    if (!barrier->used)
        barrier->result[1] = 1;
    barrier->result[0] += ptx_lanes_count(yes);
    barrier->result[1] &= yes == mask;
    barrier->result[2] |= yes != 0;
}

static void
at_barrier(ptx_warp *warp, const ptx_instruction *in, ptx_group *group, uint32_t active)
{
    const uint32_t lane = ptx_first_lane(active), pc = group->pc;
    const uint32_t *ids = ptx_at(warp, in->a);
    const uint32_t *counts = in->b != PTX_NONE ? ptx_at(warp, in->b) : NULL;
    const uint32_t id = ids[lane], expected = counts != NULL ? counts[lane] : 0;
    const uint32_t threads = in->aligned ? PTX_LANES : ptx_lanes_count(active);
    ptx_barrier *barrier;

    if (in->aligned && active != warp->live) {
        split_waiting(warp, group, active);
        return;
    }
    if (id >= PTX_BARRIERS || expected % PTX_LANES != 0 ||
        expected > warp->block->warps_count * PTX_LANES ||
        (expected == 0 && (counts != NULL || in->mode == PTX_BARRIER_ARRIVE))) {
        ptx_stop(warp, in, "barrier %u of %u threads", id, expected);
        return;
    }
    PTX_EACH_LANE(other, active)
    {
        if (ids[other] != id || (counts != NULL && counts[other] != expected)) {
            ptx_stop(warp, in, "lanes %u and %u name different barriers", lane, other);
            return;
        }
    }
    barrier = &warp->block->barriers[id];
    if (barrier->used && barrier->expected != expected) {
        ptx_stop(warp, in, "barrier %u is of %u threads, others say %u", id, expected,
                 barrier->expected);
        return;
    }
    if (in->mode == PTX_BARRIER_RED)
        reduce_at_barrier(warp, in, barrier, active);
    barrier->used = true;
    barrier->expected = expected;
    barrier->arrived += threads;
    if (expected != 0 && barrier->arrived > expected) {
        ptx_stop(warp, in, "more than %u threads come to barrier %u", expected, id);
        return;
    }
    ptx_sync_arrive(warp, barrier);
    split_waiting(warp, group, in->mode == PTX_BARRIER_ARRIVE ? 0 : active);
    for (uint32_t i = 0; i < warp->groups_count; i++)
        if (in->mode != PTX_BARRIER_ARRIVE && warp->groups[i].state == PTX_WAITS_LANES &&
            warp->groups[i].pc == pc && warp->groups[i].mask == active) {
            warp->groups[i].state = PTX_WAITS_BARRIER;
            warp->groups[i].barrier = (uint8_t)id;
        }
    (void)barrier_try(warp->block, id);
}

/* ---- a turn of a warp ---- */

static const int rounding_modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };

static inline uint32_t
guarded(const ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    uint32_t p;

    if (in->guard == PTX_NONE)
        return mask;
    p = *(const uint32_t *)ptx_at(warp, in->guard);
    return mask & (in->guard_negated ? ~p : p);
}

/* Executes an instruction that may move lanes to other addresses. */
static void
step_apart(ptx_warp *warp, const ptx_instruction *in, ptx_group *group, uint32_t active)
{
    switch (in->step) {
    case PTX_STEP_BRANCH:
        branch(warp, group, (uint32_t)in->immediate, active);
        break;
    case PTX_STEP_TABLE:
        branch_by_table(warp, in, group, active);
        break;
    case PTX_STEP_TOGETHER:
        together(warp, in, group, active);
        break;
    case PTX_STEP_BARRIER:
        at_barrier(warp, in, group, active);
        break;
    default:
        end_lanes(warp, in, group, active);
        break;
    }
}

/* Executes up to @turn instructions; returns the number. */
static uint64_t
run_warp(ptx_warp *warp, uint64_t turn)
{
    ptx_block *block = warp->block;
    const ptx_instruction *code = block->kernel->code;
    ptx_group *group = choose(warp);
    uint64_t left = turn;

    while (left > 0 && group != NULL && !block->failed) {
        const ptx_instruction *in = &code[group->pc];
        const uint32_t active = guarded(warp, in, group->mask);

        left--;
        if (active == 0) {
            group->pc++;
        } else if (in->step == PTX_STEP_LANES) {
            in->run(warp, in, active);
            group->pc++;
        } else if (in->step == PTX_STEP_MEMORY) {
            in->run(warp, in, active);
            group->pc++;
        } else if (in->step == PTX_STEP_ROUNDED) {
            fesetround(rounding_modes[in->rounding]);
            in->run(warp, in, active);
            fesetround(FE_TONEAREST);
            group->pc++;
        } else {
            step_apart(warp, in, group, active);
            group = choose(warp);
            continue;
        }
        if (warp->groups_count > 1)
            group = choose(warp);
    }
    return turn - left;
}

/* ---- a block ---- */

static uint32_t
special_value(const ptx_block *block, const ptx_warp *warp, uint16_t special, uint32_t lane)
{
    const uint32_t thread = warp->index * PTX_LANES + lane;
    const uint32_t *threads = block->launch->block, *blocks = block->launch->grid;

    switch (special) {
    case PTX_TID_X:
        return thread % threads[0];
    case PTX_TID_Y:
        return thread / threads[0] % threads[1];
    case PTX_TID_Z:
        return thread / threads[0] / threads[1];
    case PTX_NTID_X:
    case PTX_NTID_Y:
    case PTX_NTID_Z:
        return threads[special - PTX_NTID_X];
    case PTX_CTAID_X:
    case PTX_CTAID_Y:
    case PTX_CTAID_Z:
        return block->index[special - PTX_CTAID_X];
    case PTX_NCTAID_X:
    case PTX_NCTAID_Y:
    case PTX_NCTAID_Z:
        return blocks[special - PTX_NCTAID_X];
    case PTX_LANEID:
        return lane;
    case PTX_WARPID:
        return warp->index;
    case PTX_NWARPID:
        return block->warps_count;
    case PTX_LANEMASK_EQ:
        return 1u << lane;
    case PTX_LANEMASK_LT:
        return (1u << lane) - 1;
    case PTX_LANEMASK_LE:
        return (2u << lane) - 1;
    case PTX_LANEMASK_GT:
        return ~((2u << lane) - 1);
    case PTX_LANEMASK_GE:
        return ~((1u << lane) - 1);
    case PTX_NSMID:
        return 1;
    case PTX_DYNAMIC_SMEM_SIZE:
        return block->launch->shared_bytes;
    case PTX_TOTAL_SMEM_SIZE:
        return block->shared_bytes;
    default: /* %smid, %gridid */
        return 0;
    }
}

static void
fill_register(ptx_warp *warp, const ptx_filled *filled)
{
    void *d = ptx_at(warp, filled->offset);

    if (filled->bytes == 0) {
        *(uint32_t *)d = filled->value != 0 ? PTX_ALL_LANES : 0;
        return;
    }
    for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
        const uint64_t x = filled->special != PTX_SPECIAL_NONE
                               ? special_value(warp->block, warp, filled->special, lane)
                               : filled->value;

        memcpy((unsigned char *)d + (size_t)lane * filled->bytes, &x, filled->bytes);
    }
}

static bool
depends_on_block(uint16_t special)
{
    return special >= PTX_CTAID_X && special <= PTX_CTAID_Z;
}

/* Initialises the registers, memory and clocks of a block. */
static void
block_begin(ptx_block *block)
{
    const ptx_kernel *kernel = block->kernel;

    memset(block->shared, 0xff, block->shared_bytes); /* NaN */
    memset(block->barriers, 0, sizeof(block->barriers));
    ptx_sync_block(block);
    for (uint32_t i = 0; i < block->warps_count; i++) {
        ptx_warp *warp = &block->warps[i];

        warp->live = warp->there;
        warp->groups_count = 0;
        warp->copies_count = 0;
        memset(warp->committed, 0, sizeof(warp->committed));
        group_new(warp, 0, warp->there, PTX_READY);
        if (kernel->local_bytes > 0)
            memset(warp->local, 0xff, (size_t)kernel->local_bytes * PTX_LANES);
        for (uint32_t k = 0; k < kernel->filled_count; k++)
            if (depends_on_block(kernel->filled[k].special))
                fill_register(warp, &kernel->filled[k]);
    }
}

/* Deadlock: reports what each warp waits for. */
static void
stuck(ptx_block *block)
{
    for (uint32_t i = 0; i < block->warps_count; i++) {
        ptx_warp *warp = &block->warps[i];

        for (uint32_t k = 0; k < warp->groups_count; k++) {
            const ptx_group *group = &warp->groups[k];
            const ptx_instruction *in = &block->kernel->code[group->pc];

            if (group->state == PTX_WAITS_LANES)
                ptx_stop(warp, in, "the lanes 0x%08x wait for others of 0x%08x, which never come",
                         group->mask, warp->live);
            else
                ptx_stop(warp, in,
                         "the lanes 0x%08x wait at barrier %u, to which others never come",
                         group->mask, group->barrier);
        }
    }
}

/* A round of turns; false once the block has ended or failed. */
static bool
block_round(ptx_block *block)
{
    const uint32_t start = (uint32_t)(ptx_random(&block->random) >> 32) % block->warps_count;
    bool moved = false, live = false;

    for (uint32_t i = 0; i < block->warps_count && !block->failed; i++) {
        ptx_warp *warp = &block->warps[(start + i) % block->warps_count];
        const uint64_t drawn = ptx_random(&block->random);
        /* Mostly until the next barrier, sometimes a short turn. */
        const uint64_t turn = drawn % 4 == 0 ? 1 + (drawn >> 8) % TURN_MAX : UINT64_MAX;
        uint64_t done;

        if (warp->live == 0)
            continue;
        done = run_warp(warp, MIN(turn, block->instructions_left));
        moved = moved || done > 0;
        block->counts->instructions += done;
        block->instructions_left -= done;
        if (block->instructions_left == 0 && !block->failed)
            ptx_stop(warp, NULL, "does not end within the instructions that it may take");
    }
    for (uint32_t id = 0; id < PTX_BARRIERS && !block->failed; id++)
        moved |= barrier_try(block, id);
    for (uint32_t i = 0; i < block->warps_count; i++)
        live = live || block->warps[i].live != 0;
    if (live && !moved && !block->failed)
        stuck(block);
    return live && !block->failed;
}

/* ---- a launch ---- */

static bool
launch_fits(const ptx_kernel *kernel, const ptx_launch *launch, char error[256])
{
    uint64_t threads = 1, blocks = 1;

    for (uint32_t i = 0; i < 3; i++) {
        threads *= MIN(launch->block[i], 1u << 20);
        blocks *= MIN(launch->grid[i], UINT32_C(1) << 31);
        if (launch->block[i] > (i == 2 ? 64u : 1024u) ||
            launch->grid[i] > (i == 0 ? INT32_MAX : 65535))
            threads = 0;
        blocks = MIN(blocks, UINT64_C(1) << 32);
    }
    if (threads == 0 || threads > 1024 || blocks == 0 || blocks >= UINT64_C(1) << 32) {
        snprintf(error, 256, "%.80s: a grid of %u,%u,%u blocks of %u,%u,%u threads", kernel->name,
                 launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                 launch->block[1], launch->block[2]);
        return false;
    }
    if (kernel->threads_max != 0 && threads > kernel->threads_max) {
        snprintf(error, 256, "%.80s: %u threads, made for at most %u", kernel->name,
                 (uint32_t)threads, kernel->threads_max);
        return false;
    }
    if (launch->shared_bytes > PTX_SHARED_BYTES_MAX - kernel->shared_bytes) {
        snprintf(error, 256, "%.80s: %u bytes of shared memory and %u of its own", kernel->name,
                 launch->shared_bytes, kernel->shared_bytes);
        return false;
    }
    return true;
}

static void *
aligned_new(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);

    g_assert(memory != NULL);
    return memory;
}

static void
warps_new(ptx_block *block)
{
    const ptx_kernel *kernel = block->kernel;

    block->warps = g_new0(ptx_warp, block->warps_count);
    for (uint32_t i = 0; i < block->warps_count; i++) {
        ptx_warp *warp = &block->warps[i];
        const uint32_t lanes = MIN(block->threads - i * PTX_LANES, PTX_LANES);

        warp->block = block;
        warp->index = i;
        warp->there = lanes == PTX_LANES ? PTX_ALL_LANES : (1u << lanes) - 1;
        warp->registers = aligned_new(kernel->registers_bytes);
        memset(warp->registers, 0xff, kernel->registers_bytes);
        if (kernel->local_bytes > 0)
            warp->local = aligned_new((size_t)kernel->local_bytes * PTX_LANES);
        for (uint32_t k = 0; k < kernel->filled_count; k++)
            fill_register(warp, &kernel->filled[k]);
    }
}

static void
block_free(ptx_block *block)
{
    for (uint32_t i = 0; i < block->warps_count; i++) {
        free(block->warps[i].registers);
        free(block->warps[i].local);
        free(block->warps[i].copies);
    }
    g_free(block->warps);
    g_free(block->params);
    free(block->shared);
    g_free(block->written);
    g_free(block->reads);
}

static uint64_t *
drawn_blocks(ptx_block *block, uint64_t count)
{
    uint64_t *order = g_new0(uint64_t, count);

    for (uint64_t i = 0; i < count; i++) {
        const uint64_t k = ptx_random(&block->random) % (i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    return order;
}

static uint64_t
mixed(uint64_t seed)
{
    seed = (seed + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    seed ^= seed >> 31;
    seed *= UINT64_C(0x94d049bb133111eb);
    seed ^= seed >> 29;
    return seed != 0 ? seed : 1;
}

bool
ptx_run(const ptx_kernel *kernel, const ptx_launch *launch, const ptx_memory *memory,
        ptx_counts *counts, char error[256])
{
    const uint32_t *grid = launch->grid;
    const uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    ptx_counts ignored = { 0 };
    ptx_block block = { .kernel = kernel,
                        .launch = launch,
                        .memory = memory,
                        .counts = counts != NULL ? counts : &ignored,
                        .error = error,
                        .random = mixed(launch->seed),
                        .now = 1 };
    g_autofree uint64_t *order = NULL;

    error[0] = 0;
    if (!launch_fits(kernel, launch, error))
        return false;
    block.threads = launch->block[0] * launch->block[1] * launch->block[2];
    block.warps_count = (block.threads + PTX_LANES - 1) / PTX_LANES;
    block.shared_bytes = kernel->shared_bytes + launch->shared_bytes;
    block.instructions_left =
        launch->instructions_max != 0 ? launch->instructions_max : INSTRUCTIONS_MAX_DEFAULT;
    block.shared = aligned_new(block.shared_bytes);
    block.granules = (block.shared_bytes >> kernel->granule_shift) + 1;
    block.written = g_new0(ptx_written, block.granules);
    block.reads = g_new0(ptx_read, (size_t)block.granules * block.warps_count);
    block.params = g_malloc0(kernel->params_bytes + 16);
    for (uint32_t i = 0; i < kernel->params_count; i++)
        memcpy(block.params + kernel->params[i].offset, launch->args[i], kernel->params[i].bytes);
    warps_new(&block);
    order = drawn_blocks(&block, blocks);
    for (uint64_t i = 0; i < blocks && !block.failed; i++) {
        block.index[0] = (uint32_t)(order[i] % grid[0]);
        block.index[1] = (uint32_t)(order[i] / grid[0] % grid[1]);
        block.index[2] = (uint32_t)(order[i] / grid[0] / grid[1]);
        block_begin(&block);
        while (block_round(&block))
            continue;
    }
    block_free(&block);
    return !block.failed;
}
