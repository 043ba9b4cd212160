/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/gpu/nccl_join.h"

#define BYTE_STRIDE 16 /* between the test bytes of connections */
#define DRAIN_US 1000000

static bool
join_world(LhNcclRank *j, GError **error)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const LhNcclLinks *links = j->links;

    config.blocking = 0;
    return lh_nccl_done(j,
                        links->nccl->CommInitRankConfig(&j->world, (int)links->ranks, links->id,
                                                        (int)j->rank.rank, &config),
                        "the communicator of all ranks", error) &&
           lh_nccl_settle(j, j->world, "the communicator of all ranks", error);
}

/* Creates the lanes of a round with one split, in which every rank takes part. */
static bool
split_round(LhNcclRank *j, uint32_t round, GError **error)
{
    const LhNcclLinks *links = j->links;
    int color = NCCL_SPLIT_NOCOLOR, key = 0;
    ncclComm_t none = NULL, *made = &none;

    for (uint32_t i = 0; i < lh_nccl_comms_count(links->lanes); i++) {
        const LhNcclComm *lane = lh_nccl_comms_at(links->lanes, i);
        const uint32_t position = lh_nccl_comm_position(lane, j->rank.rank);

        if (lane->round != round || position == UINT32_MAX)
            continue;
        color = (int)i;
        key = (int)position;
        made = &j->comms[i];
    }
    if (!lh_nccl_done(j, links->nccl->CommSplit(j->world, color, key, made, NULL),
                      "the split of communicators", error) ||
        !lh_nccl_settle(j, j->world, "the split of communicators", error))
        return false;
    return *made == NULL || lh_nccl_settle(j, *made, "the split of communicators", error);
}

/* Exchanges a byte over every connection of a lane, each at an address of its own. */
static ncclResult_t
send_bytes(const LhNcclRank *j, const LhNcclComm *lane, ncclComm_t comm, unsigned char *memory)
{
    const LhNccl *nccl = j->links->nccl;
    const uint32_t own = lh_nccl_comm_position(lane, j->rank.rank);
    unsigned char *to = memory + BYTE_STRIDE;
    ncclResult_t result = ncclSuccess;

    for (uint32_t i = 0; result == ncclSuccess && i < lane->pairs_count; i++) {
        const LhNcclCommPair *pair = &lane->pairs[i];

        if (pair->from == own)
            result = nccl->Send(memory, 1, ncclUint8, (int)pair->to, comm, j->rank.host);
        else if (pair->to == own)
            result = nccl->Recv(to, 1, ncclUint8, (int)pair->from, comm, j->rank.host);
        to += BYTE_STRIDE;
    }
    /* Collectives consist of messages between any two members; NCCL's own connect in
     * add_number(). */
    for (uint32_t i = 0; result == ncclSuccess && lane->collectives && i < lane->count; i++) {
        if (i == own)
            continue;
        result = nccl->Send(memory, 1, ncclUint8, (int)i, comm, j->rank.host);
        if (result == ncclSuccess)
            result = nccl->Recv(to, 1, ncclUint8, (int)i, comm, j->rank.host);
        to += BYTE_STRIDE;
    }
    return result;
}

/* All-reduces a number at @memory over a communicator. */
static bool
add_number(const LhNcclRank *j, ncclComm_t comm, unsigned char *memory, const char *what,
           GError **error)
{
    return lh_nccl_done(j,
                        j->links->nccl->AllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm,
                                                  j->rank.host),
                        what, error) &&
           lh_nccl_settle(j, comm, what, error);
}

/*
 * Establishes the connections of a lane. The first message between two ranks connects them, for
 * which each host waits for the other, and so does the first collective. So every pair of the lane
 * exchanges a byte now, and all its ranks all-reduce a number.
 */
static bool
connect_lane(LhNcclRank *j, uint32_t index, GError **error)
{
    const LhNcclComm *lane = lh_nccl_comms_at(j->links->lanes, index);
    const LhRunDevice *device = j->links->params->device;
    const uint64_t bytes = (UINT64_C(1) + lane->pairs_count + lane->count) * BYTE_STRIDE;
    g_autofree char *name = lh_nccl_comm_text(lane);
    g_autofree char *what = g_strconcat("the connections of ", name, NULL);
    unsigned char *memory = device->alloc(j->rank.device, bytes, error);
    ncclResult_t result, end;
    bool ok = memory != NULL && device->fill(j->rank.device, memory, 0, bytes, j->rank.host, error);

    if (ok) {
        result = j->links->nccl->GroupStart();
        if (result == ncclSuccess)
            result = send_bytes(j, lane, j->comms[index], memory);
        end = j->links->nccl->GroupEnd();
        ok = lh_nccl_done(j, result, what, error) && lh_nccl_done(j, end, what, error) &&
             lh_nccl_settle(j, j->comms[index], what, error) &&
             (!j->links->params->native || !lane->collectives ||
              add_number(j, j->comms[index], memory, what, error)) &&
             lh_nccl_finish_host(j, what, error);
    }
    lh_nccl_give_back(j, memory, ok);
    return ok;
}

/* A barrier of hosts and devices, so that device clocks start within the time of one message. */
static bool
meet_ranks(LhNcclRank *j, GError **error)
{
    const LhRunDevice *device = j->links->params->device;
    const char *what = "the initial barrier of all ranks";
    unsigned char *memory = device->alloc(j->rank.device, sizeof(float), error);
    const bool ok = memory != NULL &&
                    device->fill(j->rank.device, memory, 0, sizeof(float), j->rank.host, error) &&
                    add_number(j, j->world, memory, what, error) &&
                    lh_nccl_finish_host(j, what, error);

    lh_nccl_give_back(j, memory, ok);
    return ok;
}

static bool
join_lanes(LhNcclRank *j, GError **error)
{
    const LhNcclLinks *links = j->links;

    for (uint32_t i = 0; i < lh_nccl_comms_rounds(links->lanes); i++) {
        if (!split_round(j, i, error))
            return false;
    }
    for (uint32_t i = 0; i < lh_nccl_comms_count(links->lanes); i++) {
        if (j->comms[i] != NULL && !connect_lane(j, i, error))
            return false;
    }
    return meet_ranks(j, error);
}

void
lh_nccl_set_stage(LhNcclRank *j, LhNcclStage stage)
{
    atomic_store(&j->links->stages[j->rank.rank - j->links->params->control->place.first],
                 (int)stage);
}

void
lh_nccl_abort(void *joined)
{
    LhNcclRank *j = joined;
    const LhNccl *nccl = j->links->nccl;

    if (j->aborted)
        return;
    j->aborted = true;
    for (uint32_t i = 0; i < lh_nccl_comms_count(j->links->lanes); i++) {
        if (j->comms[i] != NULL)
            nccl->CommAbort(j->comms[i]);
    }
    if (j->world != NULL)
        nccl->CommAbort(j->world);
}

/* After an abort of NCCL, waits briefly for the host's stream to become idle. */
static void
drain(const LhNcclRank *j)
{
    const LhRunDevice *device = j->links->params->device;
    const int64_t end_us = g_get_monotonic_time() + DRAIN_US;
    const LhDeviceMark mark = device->mark(j->rank.device, j->rank.host, NULL);

    while (mark != NULL && device->passed(j->rank.device, mark, NULL) == 0 &&
           g_get_monotonic_time() < end_us)
        g_usleep(LH_NCCL_LOOK_US);
    if (mark != NULL)
        device->unmark(j->rank.device, mark);
}

void
lh_nccl_rank_free(LhNcclRank *j)
{
    const LhRunDevice *device = j->links->params->device;

    if (j->aborted)
        drain(j);
    for (guint i = 0; i < j->outgrown->len; i++)
        device->release(j->rank.device, g_ptr_array_index(j->outgrown, i));
    for (guint i = 0; i < j->staging->len; i++) {
        if (g_array_index(j->staging, LhNcclStaging, i).memory != NULL)
            device->release(j->rank.device, g_array_index(j->staging, LhNcclStaging, i).memory);
    }
    g_array_unref(j->staging);
    g_ptr_array_unref(j->outgrown);
    g_free(j->comms);
    g_free(j);
}

void *
lh_nccl_join(void *data, const LhLinksRank *rank, GError **error)
{
    LhNcclLinks *links = data;
    LhNcclRank *j = g_new0(LhNcclRank, 1);

    j->links = links;
    j->rank = *rank;
    j->comms = g_new0(ncclComm_t, MAX(lh_nccl_comms_count(links->lanes), 1));
    j->staging = g_array_new(FALSE, FALSE, sizeof(LhNcclStaging));
    j->outgrown = g_ptr_array_new();
    if (join_world(j, error) && join_lanes(j, error)) {
        lh_nccl_set_stage(j, LH_NCCL_AT_RUN);
        return j;
    }
    lh_nccl_abort(j);
    lh_nccl_rank_free(j);
    return NULL;
}
