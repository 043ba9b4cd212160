/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/nccl_messages.h"

#define STAGED_ALIGN 16 /* alignment of messages in staging memory, bytes */

static LhNcclStaging *
staging_of(LhNcclRank *j, LhDeviceStream stream)
{
    const LhNcclStaging none = { .stream = stream };

    for (guint i = 0; i < j->staging->len; i++) {
        if (g_array_index(j->staging, LhNcclStaging, i).stream == stream)
            return &g_array_index(j->staging, LhNcclStaging, i);
    }
    g_array_append_val(j->staging, none);
    return &g_array_index(j->staging, LhNcclStaging, j->staging->len - 1);
}

/* Whether a message is staged: the pieces of an exchange have the same sizes at both ends and are
 * sent one by one; those of a collective may differ. */
static bool
is_staged(const LhOp *op, const LhMessage *m)
{
    return op->kind == LH_OP_COLLECTIVE && m->pieces_count > 1;
}

/* Makes room for the staged messages of a group. The stream has finished with the previous group's
 * when it reaches this one. */
static bool
make_room(LhNcclRank *j, const LhOp *op, LhMessage *const *messages, uint32_t count, GError **error)
{
    for (uint32_t i = 0; i < count; i++) {
        const LhMessage *m = messages[i];
        uint64_t bytes = 0;
        LhNcclStaging *s;

        if (!is_staged(op, m))
            continue;
        s = staging_of(j, m->stream);
        s->used = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (is_staged(op, messages[k]) && messages[k]->stream == m->stream)
                bytes += (messages[k]->bytes + STAGED_ALIGN - 1) / STAGED_ALIGN * STAGED_ALIGN;
        }
        if (bytes <= s->bytes)
            continue;
        if (s->memory != NULL)
            g_ptr_array_add(j->outgrown, s->memory);
        s->bytes = MAX(bytes, 2 * s->bytes);
        s->memory = j->links->params->device->alloc(j->rank.device, s->bytes, error);
        if (s->memory == NULL) {
            s->bytes = 0;
            return false;
        }
    }
    return true;
}

/* Copies a message's pieces to @memory (send) or from it (receive). */
static bool
copy_pieces(const LhNcclRank *j, const LhMessage *m, unsigned char *memory, GError **error)
{
    const LhRunDevice *device = j->links->params->device;

    for (uint32_t i = 0; i < m->pieces_count; i++) {
        unsigned char *to = m->send ? memory : m->pieces[i].data;
        const unsigned char *from = m->send ? m->pieces[i].data : memory;

        if (!device->copy(j->rank.device, to, from, m->pieces[i].bytes, m->stream, error))
            return false;
        memory += m->pieces[i].bytes;
    }
    return true;
}

/* Allocates the staging memory of a message. */
static unsigned char *
take_room(LhNcclRank *j, const LhMessage *m)
{
    LhNcclStaging *s = staging_of(j, m->stream);
    unsigned char *memory = s->memory + s->used;

    s->used += (m->bytes + STAGED_ALIGN - 1) / STAGED_ALIGN * STAGED_ALIGN;
    return memory;
}

static uint32_t
lane_of(const LhNcclRank *j, const LhOp *op, const LhMessage *m)
{
    return op->kind == LH_OP_COLLECTIVE
               ? lh_nccl_comm_of_collective(j->links->lanes, op)
               : lh_nccl_comm_of_message(j->links->lanes, op, j->rank.rank, m->peer);
}

static ncclResult_t
post_bytes(const LhNcclRank *j, const LhMessage *m, LhPiece piece, uint32_t lane)
{
    const LhNccl *nccl = j->links->nccl;
    const int peer = (int)lh_nccl_comm_position(lh_nccl_comms_at(j->links->lanes, lane), m->peer);
    const ncclComm_t comm = j->comms[lane];

    if (piece.bytes == 0)
        return ncclSuccess;
    return m->send ? nccl->Send(piece.data, piece.bytes, ncclUint8, peer, comm, m->stream)
                   : nccl->Recv(piece.data, piece.bytes, ncclUint8, peer, comm, m->stream);
}

static ncclResult_t
post_message(const LhNcclRank *j, const LhOp *op, const LhMessage *m, unsigned char *staged)
{
    const uint32_t lane = lane_of(j, op, m);
    ncclResult_t result = ncclSuccess;

    if (staged != NULL)
        return post_bytes(j, m, (LhPiece){ staged, m->bytes }, lane);
    for (uint32_t i = 0; result == ncclSuccess && i < m->pieces_count; i++)
        result = post_bytes(j, m, m->pieces[i], lane);
    return result;
}

/* Lists the communicators of a group: "communicator 1 of ranks 0, 4, communicator 2 ..."; caller
 * frees. */
static char *
group_text(const LhNcclRank *j, const LhOp *op, LhMessage *const *messages, uint32_t count)
{
    GString *text = g_string_new(NULL);
    uint32_t last = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t lane = lane_of(j, op, messages[i]);
        g_autofree char *name = lh_nccl_comm_text(lh_nccl_comms_at(j->links->lanes, lane));

        if (lane != last)
            g_string_append_printf(text, "%s%s", last == UINT32_MAX ? "" : ", ", name);
        last = lane;
    }
    return g_string_free(text, FALSE);
}

/* Waits for the communicators of a group, which stay in progress until their kernels are
 * enqueued. */
static bool
settle_group(const LhNcclRank *j, const LhOp *op, LhMessage *const *messages, uint32_t count,
             GError **error)
{
    uint32_t last = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t lane = lane_of(j, op, messages[i]);

        if (lane != last && !lh_nccl_settle(j, j->comms[lane], "a group of messages", error))
            return false;
        last = lane;
    }
    return true;
}

static bool
post_group(LhNcclRank *j, const LhOp *op, LhMessage *const *messages, uint32_t count,
           unsigned char **staged, GError **error)
{
    const LhNccl *nccl = j->links->nccl;
    ncclResult_t result, end;

    for (uint32_t i = 0; i < count; i++) {
        if (!is_staged(op, messages[i]))
            continue;
        staged[i] = take_room(j, messages[i]);
        if (messages[i]->send && !copy_pieces(j, messages[i], staged[i], error))
            return false;
    }
    result = nccl->GroupStart();
    for (uint32_t i = 0; result == ncclSuccess && i < count; i++)
        result = post_message(j, op, messages[i], staged[i]);
    end = nccl->GroupEnd();
    if (!lh_nccl_done(j, result, "a group of messages", error) ||
        !lh_nccl_done(j, end, "a group of messages", error) ||
        !settle_group(j, op, messages, count, error)) {
        g_autofree char *group = group_text(j, op, messages, count);

        g_prefix_error(error, "%s: ", group);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (staged[i] != NULL && !messages[i]->send &&
            !copy_pieces(j, messages[i], staged[i], error))
            return false;
    }
    return true;
}

bool
lh_nccl_exchange(void *joined, const LhOp *op, LhMessage *const *messages, uint32_t count,
                 GError **error)
{
    LhNcclRank *j = joined;
    g_autofree unsigned char **staged = g_new0(unsigned char *, MAX(count, 1));

    if (!make_room(j, op, messages, count, error) ||
        !post_group(j, op, messages, count, staged, error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        messages[i]->complete(messages[i], NULL);
    return true;
}

/* ---- NCCL's collectives ---- */

static ncclDataType_t
type_of(enum lh_storage storage)
{
    switch (storage) {
    case LH_STORAGE_BF16:
        return ncclBfloat16;
    case LH_STORAGE_FP16:
        return ncclFloat16;
    default:
        return ncclFloat32;
    }
}

static ncclResult_t
call_collective(const LhNcclRank *j, const LhNativeCall *call, ncclComm_t comm)
{
    const LhNccl *nccl = j->links->nccl;
    const ncclDataType_t type = type_of(call->storage);
    const uint64_t element = lh_storage_bytes(call->storage);

    switch (call->kind) {
    case LH_COLL_ALL_GATHER:
        return nccl->AllGather(call->from, call->to, call->from_bytes, ncclUint8, comm,
                               call->stream);
    case LH_COLL_REDUCE_SCATTER:
        return nccl->ReduceScatter(call->from, call->to, call->to_bytes / element, type, ncclSum,
                                   comm, call->stream);
    case LH_COLL_ALL_REDUCE:
        return nccl->AllReduce(call->from, call->to, call->to_bytes / element, type, ncclSum, comm,
                               call->stream);
    default:
        return nccl->Broadcast(call->from, call->to, call->to_bytes, ncclUint8, 0, comm,
                               call->stream);
    }
}

bool
lh_nccl_collectives(void *joined, const LhOp *op, const LhNativeCall *calls, uint32_t count,
                    GError **error)
{
    const LhNcclRank *j = joined;
    const LhNccl *nccl = j->links->nccl;
    const uint32_t lane = lh_nccl_comm_of_collective(j->links->lanes, op);
    const char *what = lh_collective_names[op->collective.kind];
    ncclResult_t result = nccl->GroupStart(), end;

    for (uint32_t i = 0; result == ncclSuccess && i < count; i++)
        result = call_collective(j, &calls[i], j->comms[lane]);
    end = nccl->GroupEnd();
    if (lh_nccl_done(j, result, what, error) && lh_nccl_done(j, end, what, error) &&
        lh_nccl_settle(j, j->comms[lane], what, error))
        return true;
    {
        g_autofree char *name = lh_nccl_comm_text(lh_nccl_comms_at(j->links->lanes, lane));

        g_prefix_error(error, "%s: ", name);
    }
    return false;
}
