/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binds the regions of an op to memory. The host binds an op when it issues it, so that later
 * allocs and frees do not affect it.
 */
#include "runtime/bind.h"

#include "base/error.h"
#include "program/op_names.h"

static LhRunCell *
cells_of(const LhRunner *rank, const LhRegion *region)
{
    const LhSlot *slot = &rank->execution->program->slots[region->slot];

    return &rank->cells[slot->first_cell + region->part];
}

static bool
refuse_cell(const LhRunner *rank, const LhOp *op, const LhRegion *region, uint32_t i,
            const char *what)
{
    g_autofree char *cell = lh_cell_text(rank->execution->program, region->slot, region->part + i);

    return lh_execution_fail_op(rank, op, LH_ERROR_RUNTIME, "slot %s %s", cell, what);
}

/* ---- alloc and free ---- */

bool
lh_runner_alloc(LhRunner *rank, const LhOp *op, bool *later)
{
    const LhRegion *region = &op->memory.region;
    const LhProgram *program = rank->execution->program;
    const LhBackend *backend = rank->execution->params->backend;
    const LhBufferParams params = { .parts = region->count,
                                    .part_bytes = program->slots[region->slot].part_bytes,
                                    .packed = backend->packed,
                                    .guarded = !rank->execution->params->unguarded };
    LhRunCell *cells = cells_of(rank, region);
    GError *error = NULL;
    LhBuffer *buffer;

    for (uint32_t i = 0; i < region->count; i++) {
        if (cells[i].buffer != NULL)
            return refuse_cell(rank, op, region, i, "is allocated already");
    }
    buffer = lh_buffer_new(&rank->at, &params, &error);
    if (buffer == NULL && later != NULL) {
        *later = true;
        g_clear_error(&error);
        return true;
    }
    if (buffer == NULL) {
        lh_execution_fail(rank->execution, error);
        return false;
    }
    for (uint32_t i = 0; i < region->count; i++)
        cells[i] = (LhRunCell){ buffer, i };
    /* Stream threads do not check whether it is filled. */
    if (backend->links == NULL && !lh_buffer_finish(buffer, &rank->at, &error)) {
        lh_execution_fail(rank->execution, error);
        return false;
    }
    lh_live_change(&rank->live, program, *region, true);
    return true;
}

/* Fails the run because a canary was overwritten; the error names the op that released the last
 * hold. */
static bool
fail_whole(const LhRunner *rank, const LhOp *op)
{
    return lh_execution_fail_op(rank, op, LH_ERROR_RUNTIME,
                                "something wrote beyond the end of a slot that this op used last");
}

/* Submission engine: releases the holds and checks the canaries later. */
static bool
release_later(LhRunner *rank, const LhOp *op, LhBuffer *buffer, gint holds)
{
    GError *error = NULL;
    LhEnding ending = { .op = *op };

    if (!lh_buffer_give_up(buffer, holds, &rank->at, &ending.end, &error)) {
        lh_execution_fail(rank->execution, error);
        return false;
    }
    if (ending.end != NULL)
        g_queue_push_tail(&rank->endings, g_memdup2(&ending, sizeof(ending)));
    return true;
}

bool
lh_runner_look_at_ending(LhRunner *rank)
{
    LhEnding *ending = g_queue_peek_head(&rank->endings);
    GError *error = NULL;
    bool whole = true;
    int passed;

    if (ending == NULL)
        return false;
    passed = lh_buffer_end_look(ending->end, &rank->at, &whole, &error);
    if (passed == 0)
        return false;
    if (passed < 0)
        lh_execution_fail(rank->execution, error);
    else if (!whole)
        fail_whole(rank, &ending->op);
    g_free(g_queue_pop_head(&rank->endings));
    return true;
}

static bool
release(LhRunner *rank, const LhPlaceOfWork *at, const LhOp *op, LhBuffer *buffer, gint holds)
{
    GError *error = NULL;
    bool whole = true;

    if (rank->execution->params->backend->links != NULL)
        return release_later(rank, op, buffer, holds);
    if (!lh_buffer_release(buffer, holds, at, &whole, &error)) {
        lh_execution_fail(rank->execution, error);
        return false;
    }
    return whole || fail_whole(rank, op);
}

bool
lh_runner_free(LhRunner *rank, const LhOp *op)
{
    const LhRegion *region = &op->memory.region;
    LhRunCell *cells = cells_of(rank, region);

    for (uint32_t i = 0; i < region->count; i++) {
        LhBuffer *buffer = cells[i].buffer;

        if (buffer == NULL)
            return refuse_cell(rank, op, region, i, "is not allocated");
        cells[i].buffer = NULL;
        if (!release(rank, &rank->at, op, buffer, 1))
            return false;
    }
    lh_live_change(&rank->live, rank->execution->program, *region, false);
    return true;
}

/* ---- binding ---- */

/* Binds a region and takes a hold on its buffers; consecutive parts that share a buffer take one
 * hold. In each part v follows k. */
static bool
bind_region(LhRunner *rank, LhItem *item, const LhRegion *region)
{
    LhBoundRegion *bound = &item->bound[item->bound_count++];
    const LhRunCell *cells = cells_of(rank, region);
    const uint64_t bytes = lh_region_part_bytes(rank->execution->program, *region);
    const uint64_t skipped_bytes = region->half == LH_HALF_V ? bytes : 0;

    *bound = (LhBoundRegion){ .region = *region,
                              .parts = g_new(unsigned char *, region->count),
                              .part_bytes = bytes };
    for (uint32_t i = 0; i < region->count; i++) {
        LhBuffer *buffer = cells[i].buffer;

        if (buffer == NULL)
            return refuse_cell(rank, &item->op, region, i, "is not allocated");
        bound->parts[i] = lh_buffer_part(buffer, cells[i].part) + skipped_bytes;
        if (i > 0 && buffer == cells[i - 1].buffer)
            continue;
        g_ptr_array_add(item->buffers, lh_buffer_hold(buffer));
        bound->stride_bytes = i == 0 ? buffer->stride_bytes : 0;
    }
    return true;
}

static uint32_t
list_regions_of_parts(const LhItem *item, const LhRegion **regions)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < item->op.exchange.parts_count; i++) {
        g_assert(item->parts != NULL);
        for (uint32_t k = 0; k < item->parts[i].regions_count; k++)
            regions[count++] = &item->parts[i].regions[k];
    }
    return count;
}

/* Lists the regions of the op in order: the operands of a kernel; the regions of messages; for each
 * tensor of a collective the send region, then the receive region. */
static uint32_t
list_regions(const LhItem *item, const LhRegion **regions)
{
    const LhOp *op = &item->op;
    uint32_t count = 0;

    if (op->kind == LH_OP_COMPUTE) {
        for (uint32_t i = 0; i < op->compute.regions_count; i++)
            regions[count++] = &op->compute.regions[i];
    } else if (op->kind == LH_OP_EXCHANGE) {
        count = list_regions_of_parts(item, regions);
    } else {
        for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
            regions[count++] = &op->collective.send[i];
            regions[count++] = &op->collective.receive[i];
        }
    }
    return count;
}

static uint32_t
regions_max(const LhOp *op)
{
    if (op->kind == LH_OP_EXCHANGE)
        return op->exchange.parts_count * LH_PART_REGIONS_MAX;
    return MAX(LH_KERNEL_OPERANDS_MAX, 2 * LH_COLLECTIVE_TENSORS_MAX);
}

bool
lh_item_bind(LhRunner *rank, LhItem *item)
{
    g_autofree const LhRegion **regions = g_new(const LhRegion *, MAX(regions_max(&item->op), 1));
    const uint32_t count = list_regions(item, regions);

    item->bound = g_new0(LhBoundRegion, MAX(count, 1));
    item->buffers = g_ptr_array_new();
    for (uint32_t i = 0; i < count; i++) {
        if (!bind_region(rank, item, regions[i]))
            return false;
    }
    return true;
}

/* ---- further memory of an item ---- */

void *
lh_item_memory(LhItem *item, uint64_t bytes)
{
    void *memory = g_malloc0(MAX(bytes, 1));

    if (item->memory == NULL)
        item->memory = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(item->memory, memory);
    return memory;
}

void
lh_item_keep(LhItem *item, unsigned char *memory)
{
    if (item->temporary == NULL)
        item->temporary = g_ptr_array_new();
    g_ptr_array_add(item->temporary, memory);
}

unsigned char *
lh_item_temporary(LhRunStream *s, LhItem *item, uint64_t bytes)
{
    GError *error = NULL;
    unsigned char *memory = s->at.device->alloc(s->at.state, MAX(bytes, 1), &error);

    if (memory == NULL) {
        lh_execution_fail(s->rank->execution, error);
        return NULL;
    }
    lh_item_keep(item, memory);
    /* cppcheck-suppress returnDanglingLifetime ; the device's, not of the error */
    return memory;
}

void
lh_item_free(LhRunner *rank, const LhPlaceOfWork *at, LhItem *item)
{
    for (guint i = 0; item->buffers != NULL && i < item->buffers->len; i++)
        release(rank, at, &item->op, g_ptr_array_index(item->buffers, i), 1);
    for (guint i = 0; item->temporary != NULL && i < item->temporary->len; i++)
        at->device->release(at->state, g_ptr_array_index(item->temporary, i));
    for (uint32_t i = 0; i < item->bound_count; i++)
        g_free(item->bound[i].parts);
    g_clear_pointer(&item->buffers, g_ptr_array_unref);
    g_clear_pointer(&item->temporary, g_ptr_array_unref);
    g_clear_pointer(&item->memory, g_ptr_array_unref);
    if (item->start != NULL)
        at->device->unmark(at->state, item->start);
    if (item->end != NULL)
        at->device->unmark(at->state, item->end);
    g_free(item->bound);
    g_free(item->messages);
    g_free(item->native);
    g_free(item->parts);
    g_free(item->counts);
    g_free(item);
}

/* ---- an item ---- */

/* Copies the op's messages or counts, which the buffer keeps only until the next step. */
static void
copy_lists(LhItem *item, const LhOpBuffer *buffer)
{
    const LhOp *op = &item->op;

    if (op->kind == LH_OP_EXCHANGE) {
        item->parts = g_memdup2(buffer->parts + op->exchange.parts_first,
                                op->exchange.parts_count * sizeof(LhPart));
    } else if (op->kind == LH_OP_COLLECTIVE && op->collective.uneven) {
        item->counts = g_memdup2(buffer->counts + op->collective.counts_first,
                                 2 * lh_group_size(&op->collective.group) *
                                     op->collective.tensors_count * sizeof(uint32_t));
        item->op.collective.counts_first = 0;
    }
}

LhItem *
lh_item_new(LhRunner *rank, const LhOp *op, const LhOpBuffer *buffer)
{
    LhItem *item = g_new0(LhItem, 1);

    item->op = *op;
    item->issued_ps = lh_execution_now(rank->execution);
    copy_lists(item, buffer);
    if (lh_item_bind(rank, item))
        return item;
    lh_item_free(rank, &rank->at, item);
    return NULL;
}
