/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links over NCCL: a thread and a GPU for each rank. The communicators are those of
 * nccl_communicators.h, split off one that spans all ranks. All are non-blocking and polled until
 * the deadline, so that a run always ends with a message, whatever the library or another rank
 * does.
 */
#include "runtime/api/links.h"

#include "base/error.h"
#include "runtime/gpu/library.h"
#include "runtime/gpu/nccl_join.h"
#include "runtime/gpu/nccl_messages.h"

#include <string.h>

#define ERROR_BYTES 400

/* What processes exchange before the first of them waits for NCCL. */
typedef struct {
    int32_t version;         /* NCCL version */
    ncclUniqueId id;         /* the first process's */
    char error[ERROR_BYTES]; /* why this process cannot take part; "": it can */
} Card;

/* ---- the process ---- */

/* "2.28.9, /usr/lib/libnccl.so.2". */
static char *
nccl_library(GError **error)
{
    const LhNccl *nccl = lh_nccl_load(error);
    g_autofree char *version = NULL;
    g_autofree char *path = NULL;
    void *function;

    if (nccl == NULL)
        return NULL;
    memcpy(&function, &nccl->GetVersion, sizeof(function));
    version = lh_nccl_version_text(nccl->version);
    path = lh_library_path(function);
    return g_strdup_printf("%s, %s", version, path);
}

static bool
compare_cards(const LhNcclLinks *links, const GByteArray *all, const Card *own, GError **error)
{
    const uint32_t processes = all->len / (uint32_t)sizeof(Card);
    const uint32_t ranks = links->ranks / MAX(processes, 1);

    for (uint32_t i = 0; i < processes; i++) {
        const Card *card = (const Card *)(const void *)(all->data + i * sizeof(Card));
        g_autofree char *theirs = lh_nccl_version_text(card->version);
        g_autofree char *ours = lh_nccl_version_text(own->version);

        if (card->error[0] != '\0')
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank %u: %s", i * ranks, card->error);
        else if (card->version != own->version)
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "rank %u has NCCL %s, and rank %u has NCCL %s", i * ranks, theirs,
                        links->params->control->place.first, ours);
        else
            continue;
        return false;
    }
    return true;
}

/* Fills in this process's card, with @error if it cannot take part. */
static void
fill_card(LhNcclLinks *links, Card *card, GError **error)
{
    links->nccl = lh_nccl_load(error);
    if (links->nccl == NULL)
        return;
    links->lanes = lh_nccl_comms_new(links->params->program, error);
    if (links->lanes == NULL)
        return;
    card->version = links->nccl->version;
    /* Without it, kernels of two communicators might be launched in different orders on two
     * ranks. */
    if (lh_nccl_comms_count(links->lanes) > 1)
        g_setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", FALSE);
    if (links->params->control->place.first == 0 &&
        links->nccl->GetUniqueId(&card->id) != ncclSuccess)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "NCCL: no unique id: %s",
                    links->nccl->GetLastError(NULL));
}

/* All-gathers the cards, so that no process waits for one that cannot take part. */
static bool
exchange_cards(LhNcclLinks *links, GError **error)
{
    const LhOpenControl *control = links->params->control;
    g_autoptr(GByteArray) mine = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    GError *own = NULL;
    Card card;

    memset(&card, 0, sizeof(card));
    fill_card(links, &card, &own);
    if (own != NULL)
        g_strlcpy(card.error, own->message, sizeof(card.error));
    g_byte_array_append(mine, (const guint8 *)&card, sizeof(card));
    if (!control->table->share(control->state, mine, sizeof(card), all,
                               own == NULL ? error : NULL)) {
        if (own != NULL)
            g_propagate_error(error, own);
        return false;
    }
    if (own != NULL) {
        g_propagate_error(error, own);
        return false;
    }
    if (!compare_cards(links, all, &card, error))
        return false;
    links->id = ((const Card *)(const void *)all->data)->id;
    return true;
}

static void
nccl_close(void *data)
{
    LhNcclLinks *links = data;

    lh_nccl_comms_free(links->lanes);
    g_free(links->stages);
    g_free(links);
}

static void *
nccl_open(const LhLinksParams *params, GError **error)
{
    LhNcclLinks *links = g_new0(LhNcclLinks, 1);

    links->params = params;
    links->ranks = lh_program_ranks(params->program);
    links->stages = g_new0(atomic_int, MAX(params->control->place.count, 1));
    if (exchange_cards(links, error))
        return links;
    nccl_close(links);
    return NULL;
}

/* ---- the end ---- */

static bool
nccl_failed(void *joined, GError **error)
{
    const LhNcclRank *j = joined;

    for (uint32_t i = 0; i <= lh_nccl_comms_count(j->links->lanes); i++) {
        const bool world = i == lh_nccl_comms_count(j->links->lanes);
        const ncclComm_t comm = world ? j->world : j->comms[i];
        ncclResult_t state = ncclSuccess;
        g_autofree char *name = NULL;

        if (comm == NULL || (j->links->nccl->CommGetAsyncError(comm, &state) == ncclSuccess &&
                             (state == ncclSuccess || state == ncclInProgress)))
            continue;
        name = world ? g_strdup("the communicator of all ranks")
                     : lh_nccl_comm_text(lh_nccl_comms_at(j->links->lanes, i));
        lh_nccl_fail(j, name, state, error);
        return true;
    }
    return false;
}

/* Finalises a communicator together with its other members; true if it is destroyed. */
static bool
finalize_comm(const LhNcclRank *j, ncclComm_t comm)
{
    const LhNccl *nccl = j->links->nccl;
    g_autoptr(GError) error = NULL;

    return lh_nccl_done(j, nccl->CommFinalize(comm), "the end of a communicator", &error) &&
           lh_nccl_settle(j, comm, "the end of a communicator", &error) &&
           nccl->CommDestroy(comm) == ncclSuccess;
}

static void
leave_comms(LhNcclRank *j)
{
    for (uint32_t i = 0; i < lh_nccl_comms_count(j->links->lanes); i++) {
        if (j->comms[i] != NULL && !finalize_comm(j, j->comms[i]))
            return;
        j->comms[i] = NULL;
    }
    if (finalize_comm(j, j->world))
        j->world = NULL;
}

static void
nccl_leave(void *joined)
{
    LhNcclRank *j = joined;

    lh_nccl_set_stage(j, LH_NCCL_AT_END);
    if (!j->aborted)
        leave_comms(j);
    if (j->world != NULL)
        lh_nccl_abort(j);
    lh_nccl_rank_free(j);
}

const LhLinks lh_links_nccl = {
    .name = "nccl",
    .needs_both = false,
    .one_queue = true,
    .describe = nccl_library,
    .open = nccl_open,
    .join = lh_nccl_join,
    .exchange = lh_nccl_exchange,
    .collectives = lh_nccl_collectives,
    .failed = nccl_failed,
    .abort = lh_nccl_abort,
    .leave = nccl_leave,
    .close = nccl_close,
};
