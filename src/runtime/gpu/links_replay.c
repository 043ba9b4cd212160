/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links of single-rank replay on a GPU (replay.h): a stream continues at the predicted time of its
 * message. All messages of an op count from its first group, so that the rounds of a collective
 * together take its predicted time.
 */
#include "runtime/api/links.h"

#include "program/program.h"

#define NONE_BEGUN UINT32_MAX
#define CELL_BYTES 8
#define CELLS (1 + LH_STREAMS_MAX) /* time stamps: start of the run, and of each stream's op */

typedef struct {
    const LhLinksParams *params;
    LhLinksRank rank;
    unsigned char *cells;
    uint32_t begun[LH_STREAMS_MAX]; /* the op whose start each stream's cell holds */
} ReplayLinks;

static void *
replay_links_open(const LhLinksParams *params, GError **error)
{
    ReplayLinks *r = g_new0(ReplayLinks, 1);

    (void)error;
    r->params = params;
    return r;
}

static void *
replay_links_join(void *links, const LhLinksRank *rank, GError **error)
{
    ReplayLinks *r = links;
    const LhRunDevice *device = r->params->device;

    r->rank = *rank;
    for (uint32_t i = 0; i < LH_STREAMS_MAX; i++)
        r->begun[i] = NONE_BEGUN;
    r->cells = device->alloc(rank->device, CELLS * CELL_BYTES, error);
    return r->cells != NULL ? r : NULL;
}

static bool
replay_links_begin(void *joined, GError **error)
{
    const ReplayLinks *r = joined;

    return r->params->device->stamp(r->rank.device, r->cells, r->rank.host, error);
}

static unsigned char *
cell_of(const ReplayLinks *r, uint32_t stream)
{
    return r->cells + (1 + stream) * (size_t)CELL_BYTES;
}

/* Stamps the start of the op, once, before its first message. */
static bool
begin_op(ReplayLinks *r, const LhOp *op, LhDeviceStream stream, GError **error)
{
    if (r->begun[op->stream] == op->id)
        return true;
    r->begun[op->stream] = op->id;
    return r->params->device->stamp(r->rank.device, cell_of(r, op->stream), stream, error);
}

/* Delays the stream until the predicted end of the op. */
static bool
end_op(const ReplayLinks *r, const LhOp *op, LhDeviceStream stream, GError **error)
{
    const LhReplayOp predicted = lh_replay_op(r->params->replay, op->id);
    const LhDevicePace pace = { .epoch = r->cells,
                                .begun = cell_of(r, op->stream),
                                .others_ps = predicted.others_ps,
                                .took_ps = predicted.took_ps };

    return r->params->device->pace(r->rank.device, &pace, stream, error);
}

static bool
bring_bytes(const ReplayLinks *r, unsigned char *to, uint64_t bytes, LhDeviceStream stream,
            GError **error)
{
    return r->params->device->fill(r->rank.device, to, LH_REPLAY_BYTE, bytes, stream, error);
}

static bool
bring_message(const ReplayLinks *r, const LhMessage *m, GError **error)
{
    for (uint32_t i = 0; !m->send && i < m->pieces_count; i++) {
        if (!bring_bytes(r, m->pieces[i].data, m->pieces[i].bytes, m->stream, error))
            return false;
    }
    return true;
}

static bool
replay_links_exchange(void *joined, const LhOp *op, LhMessage *const *messages, uint32_t count,
                      GError **error)
{
    ReplayLinks *r = joined;

    if (count == 0)
        return true;
    if (!begin_op(r, op, messages[0]->stream, error))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!bring_message(r, messages[i], error))
            return false;
    }
    if (!end_op(r, op, messages[0]->stream, error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        messages[i]->complete(messages[i], NULL);
    return true;
}

static bool
replay_links_collectives(void *joined, const LhOp *op, const LhNativeCall *calls, uint32_t count,
                         GError **error)
{
    ReplayLinks *r = joined;

    if (count == 0)
        return true;
    if (!begin_op(r, op, calls[0].stream, error))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!bring_bytes(r, calls[i].to, calls[i].to_bytes, calls[i].stream, error))
            return false;
    }
    return end_op(r, op, calls[0].stream, error);
}

static void
replay_links_leave(void *joined)
{
    const ReplayLinks *r = joined;

    r->params->device->release(r->rank.device, r->cells);
}

static void
replay_links_close(void *links)
{
    g_free(links);
}

const LhLinks lh_links_replay = {
    .name = "replay",
    .open = replay_links_open,
    .join = replay_links_join,
    .begin = replay_links_begin,
    .exchange = replay_links_exchange,
    .collectives = replay_links_collectives,
    .leave = replay_links_leave,
    .close = replay_links_close,
};
