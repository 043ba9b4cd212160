/*
 * Ranks meet over NCCL: a thread and a GPU for each. The communicators are those of
 * nccl_communicators.h, split off one that spans all ranks. None of them blocks: whatever NCCL is
 * busy with is asked for again and again until the deadline, so that a run ends with a message
 * whatever a library or another rank does.
 */
#include "runtime/api/links.h"

#include "base/error.h"
#include "base/time_units.h"
#include "runtime/gpu/library.h"
#include "runtime/gpu/nccl_api.h"
#include "runtime/gpu/nccl_communicators.h"

#include <stdatomic.h>
#include <string.h>

#define NCCL_LOOK_US 50
#define ERROR_BYTES 400
#define NAMED_MAX 8
#define DRAIN_US 1000000
#define BYTE_STRIDE 16 /* between the bytes that a connection is tried with */

/* What processes tell each other before the first of them waits for NCCL. */
typedef struct {
    int32_t version;         /* of NCCL */
    ncclUniqueId id;         /* the first process's */
    char error[ERROR_BYTES]; /* why there is nothing to be waited for; "": there is */
} Card;

/* How far a rank of this process is, for messages about those that others wait for. */
typedef enum {
    AT_START,
    AT_RUN,
    AT_END,
} Stage;

typedef struct {
    const LhLinksParams *params;
    const LhNccl *nccl;
    LhNcclComms *lanes;
    ncclUniqueId id;
    uint32_t ranks;
    atomic_int *stages; /* [place.count] of Stage */
} Links;

/* Device memory of a stream, in which messages lie end to end that have several pieces. */
typedef struct {
    LhDeviceStream stream;
    unsigned char *memory;
    uint64_t bytes, used;
} Staging;

/* A rank that has joined. */
typedef struct {
    Links *links;
    LhLinksRank rank;
    ncclComm_t world;
    ncclComm_t *comms;   /* [lanes]; NULL: without this rank */
    GArray *staging;     /* of Staging, one a stream */
    GPtrArray *outgrown; /* device memory that may still be in use */
    bool aborted;
} Joined;

/* ---- errors ---- */

/* "NCCL: @what: unhandled system error (what NCCL says)". Returns false. */
static bool
fail_nccl(const Joined *j, const char *what, ncclResult_t result, GError **error)
{
    const char *more = j->links->nccl->GetLastError(NULL);

    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank %u: NCCL: %s: %s%s%s%s", j->rank.rank,
                what, j->links->nccl->GetErrorString(result),
                more != NULL && more[0] != '\0' ? " (" : "", more != NULL ? more : "",
                more != NULL && more[0] != '\0' ? ")" : "");
    return false;
}

/* "communicator 1 of ranks 0, 4"; caller frees. */
static char *
lane_text(const LhNcclComm *lane)
{
    GString *text = g_string_new(NULL);

    g_string_printf(text, "communicator %u of rank%s ", lane->number, lane->count == 1 ? "" : "s");
    for (uint32_t i = 0; i < MIN(lane->count, NAMED_MAX); i++)
        g_string_append_printf(text, "%s%u", i > 0 ? ", " : "", lane->members[i]);
    if (lane->count > NAMED_MAX)
        g_string_append_printf(text, " and %u more", lane->count - NAMED_MAX);
    return g_string_free(text, FALSE);
}

/* The ranks of this process that are not as far as this one: ", rank 2 has not come". */
static void
append_missing(const Joined *j, GString *text)
{
    const Links *links = j->links;
    const LhControlPlace *place = &links->params->control->place;
    const int own = atomic_load(&links->stages[j->rank.rank - place->first]);
    unsigned named = 0;

    for (uint32_t r = 0; r < place->count; r++) {
        if (atomic_load(&links->stages[r]) >= own || r + place->first == j->rank.rank)
            continue;
        if (named++ < NAMED_MAX)
            g_string_append_printf(text, "%s rank %u", named == 1 ? "; of this process," : ",",
                                   r + place->first);
    }
    if (named > NAMED_MAX)
        g_string_append_printf(text, " and %u more", named - NAMED_MAX);
    if (named > 0)
        g_string_append(text, named == 1 ? " has not come" : " have not come");
}

/* ---- waiting ---- */

typedef struct {
    const Joined *j;
    const char *what;
    int64_t since_us;
} Wait;

static Wait
wait_begin(const Joined *j, const char *what)
{
    return (Wait){ j, what, g_get_monotonic_time() };
}

/* False, with the error, if there is no sense in waiting any longer. */
static bool
wait_goes_on(const Wait *w, GError **error)
{
    const int64_t waited_us = g_get_monotonic_time() - w->since_us;
    g_autoptr(GString) text = NULL;

    if (w->j->links->params->stopping(w->j->links->params->owner)) {
        g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME, "rank %u: %s: the run is being stopped",
                    w->j->rank.rank, w->what);
        return false;
    }
    if (waited_us <= w->j->links->params->deadline_us)
        return true;
    text = g_string_new(NULL);
    append_missing(w->j, text);
    g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME, "rank %u has waited for %.3g s in %s%s",
                w->j->rank.rank, (double)waited_us / LH_US_PER_S, w->what, text->str);
    return false;
}

/* Waits until a communicator has done what it was asked for. */
static bool
settle_comm(const Joined *j, ncclComm_t comm, const char *what, GError **error)
{
    const Wait wait = wait_begin(j, what);

    for (;;) {
        ncclResult_t state = ncclSuccess;
        const ncclResult_t result = j->links->nccl->CommGetAsyncError(comm, &state);

        if (result != ncclSuccess)
            return fail_nccl(j, what, result, error);
        if (state == ncclSuccess)
            return true;
        if (state != ncclInProgress)
            return fail_nccl(j, what, state, error);
        if (!wait_goes_on(&wait, error))
            return false;
        g_usleep(NCCL_LOOK_US);
    }
}

/* A call that may go on behind its return. */
static bool
done(const Joined *j, ncclResult_t result, const char *what, GError **error)
{
    return result == ncclSuccess || result == ncclInProgress || fail_nccl(j, what, result, error);
}

/* Waits until the host's stream has done everything. */
static bool
finish_host_stream(const Joined *j, const char *what, GError **error)
{
    const LhRunDevice *device = j->links->params->device;
    const Wait wait = wait_begin(j, what);
    const LhDeviceMark mark = device->mark(j->rank.device, j->rank.host, error);
    int passed = mark == NULL ? -1 : 0;

    while (passed == 0) {
        passed = device->passed(j->rank.device, mark, error);
        if (passed == 0 && !wait_goes_on(&wait, error))
            passed = -1;
        if (passed == 0)
            g_usleep(NCCL_LOOK_US);
    }
    if (mark != NULL)
        device->unmark(j->rank.device, mark);
    return passed == 1;
}

/* Memory that the host's stream used; if something failed, it may still do. */
static void
give_back(const Joined *j, unsigned char *memory, bool finished)
{
    if (memory != NULL && finished)
        j->links->params->device->release(j->rank.device, memory);
    else if (memory != NULL)
        g_ptr_array_add(j->outgrown, memory);
}

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
compare_cards(const Links *links, const GByteArray *all, const Card *own, GError **error)
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

/* What this process has, or why it cannot take part. */
static void
fill_card(Links *links, Card *card, GError **error)
{
    links->nccl = lh_nccl_load(error);
    if (links->nccl == NULL)
        return;
    links->lanes = lh_nccl_comms_new(links->params->program, error);
    if (links->lanes == NULL)
        return;
    card->version = links->nccl->version;
    /* Without it kernels of two communicators might be launched in different orders on two ranks.
     */
    if (lh_nccl_comms_count(links->lanes) > 1)
        g_setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", FALSE);
    if (links->params->control->place.first == 0 &&
        links->nccl->GetUniqueId(&card->id) != ncclSuccess)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "NCCL: no unique id: %s",
                    links->nccl->GetLastError(NULL));
}

/* Every process learns what every other one has, so that none waits for one that cannot come. */
static bool
exchange_cards(Links *links, GError **error)
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
    Links *links = data;

    lh_nccl_comms_free(links->lanes);
    g_free(links->stages);
    g_free(links);
}

static void *
nccl_open(const LhLinksParams *params, GError **error)
{
    Links *links = g_new0(Links, 1);

    links->params = params;
    links->ranks = lh_program_ranks(params->program);
    links->stages = g_new0(atomic_int, MAX(params->control->place.count, 1));
    if (exchange_cards(links, error))
        return links;
    nccl_close(links);
    return NULL;
}

/* ---- joining ---- */

static bool
join_world(Joined *j, GError **error)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const Links *links = j->links;

    config.blocking = 0;
    return done(j,
                links->nccl->CommInitRankConfig(&j->world, (int)links->ranks, links->id,
                                                (int)j->rank.rank, &config),
                "the communicator of all ranks", error) &&
           settle_comm(j, j->world, "the communicator of all ranks", error);
}

/* One split for all lanes of a round, which every rank takes part in. */
static bool
split_round(Joined *j, uint32_t round, GError **error)
{
    const Links *links = j->links;
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
    if (!done(j, links->nccl->CommSplit(j->world, color, key, made, NULL),
              "the splitting of communicators", error) ||
        !settle_comm(j, j->world, "the splitting of communicators", error))
        return false;
    return *made == NULL || settle_comm(j, *made, "the splitting of communicators", error);
}

/* The bytes that go over every connection of a lane. Each has a place of its own. */
static ncclResult_t
send_bytes(const Joined *j, const LhNcclComm *lane, ncclComm_t comm, unsigned char *memory)
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
    /* Collectives are made of messages between any two members, and NCCL has its own. */
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

/* Has all ranks of a communicator add up a number, which is at @memory. */
static bool
add_number(const Joined *j, ncclComm_t comm, unsigned char *memory, const char *what,
           GError **error)
{
    return done(j,
                j->links->nccl->AllReduce(memory, memory, 1, ncclFloat32, ncclSum, comm,
                                          j->rank.host),
                what, error) &&
           settle_comm(j, comm, what, error);
}

/*
 * The first message between two ranks makes a connection, for which the host has to wait for the
 * other one's, and so does the first collective. So every pair of a lane exchanges a byte now, and
 * all of its ranks add up a number.
 */
static bool
connect_lane(Joined *j, uint32_t index, GError **error)
{
    const LhNcclComm *lane = lh_nccl_comms_at(j->links->lanes, index);
    const LhRunDevice *device = j->links->params->device;
    const uint64_t bytes = (UINT64_C(1) + lane->pairs_count + lane->count) * BYTE_STRIDE;
    g_autofree char *name = lane_text(lane);
    g_autofree char *what = g_strconcat("the connections of ", name, NULL);
    unsigned char *memory = device->alloc(j->rank.device, bytes, error);
    ncclResult_t result, end;
    bool ok = memory != NULL && device->fill(j->rank.device, memory, 0, bytes, j->rank.host, error);

    if (ok) {
        result = j->links->nccl->GroupStart();
        if (result == ncclSuccess)
            result = send_bytes(j, lane, j->comms[index], memory);
        end = j->links->nccl->GroupEnd();
        ok = done(j, result, what, error) && done(j, end, what, error) &&
             settle_comm(j, j->comms[index], what, error) &&
             (!j->links->params->native || !lane->collectives ||
              add_number(j, j->comms[index], memory, what, error)) &&
             finish_host_stream(j, what, error);
    }
    give_back(j, memory, ok);
    return ok;
}

/* Nobody goes on before everybody is there, neither hosts nor devices, whose clocks so begin as
 * close together as one message takes. */
static bool
meet_ranks(Joined *j, GError **error)
{
    const LhRunDevice *device = j->links->params->device;
    const char *what = "the meeting of all ranks";
    unsigned char *memory = device->alloc(j->rank.device, sizeof(float), error);
    const bool ok = memory != NULL &&
                    device->fill(j->rank.device, memory, 0, sizeof(float), j->rank.host, error) &&
                    add_number(j, j->world, memory, what, error) &&
                    finish_host_stream(j, what, error);

    give_back(j, memory, ok);
    return ok;
}

static bool
join_lanes(Joined *j, GError **error)
{
    const Links *links = j->links;

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

static void
set_stage(Joined *j, Stage stage)
{
    atomic_store(&j->links->stages[j->rank.rank - j->links->params->control->place.first],
                 (int)stage);
}

static void
nccl_abort(void *joined)
{
    Joined *j = joined;
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

/* When NCCL has been aborted, what is behind it on the host's stream ends soon. */
static void
drain(const Joined *j)
{
    const LhRunDevice *device = j->links->params->device;
    const int64_t end_us = g_get_monotonic_time() + DRAIN_US;
    const LhDeviceMark mark = device->mark(j->rank.device, j->rank.host, NULL);

    while (mark != NULL && device->passed(j->rank.device, mark, NULL) == 0 &&
           g_get_monotonic_time() < end_us)
        g_usleep(NCCL_LOOK_US);
    if (mark != NULL)
        device->unmark(j->rank.device, mark);
}

static void
joined_free(Joined *j)
{
    const LhRunDevice *device = j->links->params->device;

    if (j->aborted)
        drain(j);
    for (guint i = 0; i < j->outgrown->len; i++)
        device->release(j->rank.device, g_ptr_array_index(j->outgrown, i));
    for (guint i = 0; i < j->staging->len; i++) {
        if (g_array_index(j->staging, Staging, i).memory != NULL)
            device->release(j->rank.device, g_array_index(j->staging, Staging, i).memory);
    }
    g_array_unref(j->staging);
    g_ptr_array_unref(j->outgrown);
    g_free(j->comms);
    g_free(j);
}

static void *
nccl_join(void *data, const LhLinksRank *rank, GError **error)
{
    Links *links = data;
    Joined *j = g_new0(Joined, 1);

    j->links = links;
    j->rank = *rank;
    j->comms = g_new0(ncclComm_t, MAX(lh_nccl_comms_count(links->lanes), 1));
    j->staging = g_array_new(FALSE, FALSE, sizeof(Staging));
    j->outgrown = g_ptr_array_new();
    if (join_world(j, error) && join_lanes(j, error)) {
        set_stage(j, AT_RUN);
        return j;
    }
    nccl_abort(j);
    joined_free(j);
    return NULL;
}

/* ---- messages ---- */

static Staging *
staging_of(Joined *j, LhDeviceStream stream)
{
    const Staging none = { .stream = stream };

    for (guint i = 0; i < j->staging->len; i++) {
        if (g_array_index(j->staging, Staging, i).stream == stream)
            return &g_array_index(j->staging, Staging, i);
    }
    g_array_append_val(j->staging, none);
    return &g_array_index(j->staging, Staging, j->staging->len - 1);
}

/* Pieces of an exchange are cut alike at both ends, and travel one by one. Those of a collective
 * need not be. */
static bool
is_staged(const LhOp *op, const LhMessage *m)
{
    return op->kind == LH_OP_COLLECTIVE && m->pieces_count > 1;
}

/* Makes room for the staged messages of a group. What the last group had there is done with when
 * the stream comes to this one. */
static bool
make_room(Joined *j, const LhOp *op, LhMessage *const *messages, uint32_t count, GError **error)
{
    for (uint32_t i = 0; i < count; i++) {
        const LhMessage *m = messages[i];
        uint64_t bytes = 0;
        Staging *s;

        if (!is_staged(op, m))
            continue;
        s = staging_of(j, m->stream);
        s->used = 0;
        for (uint32_t k = 0; k < count; k++) {
            if (is_staged(op, messages[k]) && messages[k]->stream == m->stream)
                bytes += (messages[k]->bytes + BYTE_STRIDE - 1) / BYTE_STRIDE * BYTE_STRIDE;
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

/* Copies a message's pieces to @memory or from it. */
static bool
copy_pieces(const Joined *j, const LhMessage *m, unsigned char *memory, GError **error)
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

/* Where the staged message lies; the next one lies behind it. */
static unsigned char *
take_room(Joined *j, const LhMessage *m)
{
    Staging *s = staging_of(j, m->stream);
    unsigned char *memory = s->memory + s->used;

    s->used += (m->bytes + BYTE_STRIDE - 1) / BYTE_STRIDE * BYTE_STRIDE;
    return memory;
}

static uint32_t
lane_of(const Joined *j, const LhOp *op, const LhMessage *m)
{
    return op->kind == LH_OP_COLLECTIVE
               ? lh_nccl_comm_of_collective(j->links->lanes, op)
               : lh_nccl_comm_of_message(j->links->lanes, op, j->rank.rank, m->peer);
}

static ncclResult_t
post_bytes(const Joined *j, const LhMessage *m, LhPiece piece, uint32_t lane)
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
post_message(const Joined *j, const LhOp *op, const LhMessage *m, unsigned char *staged)
{
    const uint32_t lane = lane_of(j, op, m);
    ncclResult_t result = ncclSuccess;

    if (staged != NULL)
        return post_bytes(j, m, (LhPiece){ staged, m->bytes }, lane);
    for (uint32_t i = 0; result == ncclSuccess && i < m->pieces_count; i++)
        result = post_bytes(j, m, m->pieces[i], lane);
    return result;
}

/* "communicator 1 of ranks 0, 4", and others of the group; caller frees. */
static char *
group_text(const Joined *j, const LhOp *op, LhMessage *const *messages, uint32_t count)
{
    GString *text = g_string_new(NULL);
    uint32_t last = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t lane = lane_of(j, op, messages[i]);
        g_autofree char *name = lane_text(lh_nccl_comms_at(j->links->lanes, lane));

        if (lane != last)
            g_string_append_printf(text, "%s%s", last == UINT32_MAX ? "" : ", ", name);
        last = lane;
    }
    return g_string_free(text, FALSE);
}

/* Waits for the communicators of a group, which are not ready before their kernels are enqueued. */
static bool
settle_group(const Joined *j, const LhOp *op, LhMessage *const *messages, uint32_t count,
             GError **error)
{
    uint32_t last = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t lane = lane_of(j, op, messages[i]);

        if (lane != last && !settle_comm(j, j->comms[lane], "a group of messages", error))
            return false;
        last = lane;
    }
    return true;
}

static bool
post_group(Joined *j, const LhOp *op, LhMessage *const *messages, uint32_t count,
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
    if (!done(j, result, "a group of messages", error) ||
        !done(j, end, "a group of messages", error) ||
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

static bool
nccl_exchange(void *joined, const LhOp *op, LhMessage *const *messages, uint32_t count,
              GError **error)
{
    Joined *j = joined;
    g_autofree unsigned char **staged = g_new0(unsigned char *, MAX(count, 1));

    if (!make_room(j, op, messages, count, error) ||
        !post_group(j, op, messages, count, staged, error))
        return false;
    for (uint32_t i = 0; i < count; i++)
        messages[i]->complete(messages[i], NULL);
    return true;
}

/* ---- collectives of its own ---- */

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
call_collective(const Joined *j, const LhNcclMeasuredCall *call, ncclComm_t comm)
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

static bool
nccl_collectives(void *joined, const LhOp *op, const LhNcclMeasuredCall *calls, uint32_t count,
                 GError **error)
{
    const Joined *j = joined;
    const LhNccl *nccl = j->links->nccl;
    const uint32_t lane = lh_nccl_comm_of_collective(j->links->lanes, op);
    const char *what = lh_collective_names[op->collective.kind];
    ncclResult_t result = nccl->GroupStart(), end;

    for (uint32_t i = 0; result == ncclSuccess && i < count; i++)
        result = call_collective(j, &calls[i], j->comms[lane]);
    end = nccl->GroupEnd();
    if (done(j, result, what, error) && done(j, end, what, error) &&
        settle_comm(j, j->comms[lane], what, error))
        return true;
    {
        g_autofree char *name = lane_text(lh_nccl_comms_at(j->links->lanes, lane));

        g_prefix_error(error, "%s: ", name);
    }
    return false;
}

/* ---- the end ---- */

static bool
nccl_failed(void *joined, GError **error)
{
    const Joined *j = joined;

    for (uint32_t i = 0; i <= lh_nccl_comms_count(j->links->lanes); i++) {
        const bool world = i == lh_nccl_comms_count(j->links->lanes);
        const ncclComm_t comm = world ? j->world : j->comms[i];
        ncclResult_t state = ncclSuccess;
        g_autofree char *name = NULL;

        if (comm == NULL || (j->links->nccl->CommGetAsyncError(comm, &state) == ncclSuccess &&
                             (state == ncclSuccess || state == ncclInProgress)))
            continue;
        name = world ? g_strdup("the communicator of all ranks")
                     : lane_text(lh_nccl_comms_at(j->links->lanes, i));
        fail_nccl(j, name, state, error);
        return true;
    }
    return false;
}

/* Ends a communicator when all its members do; true if it is gone. */
static bool
finalize_comm(const Joined *j, ncclComm_t comm)
{
    const LhNccl *nccl = j->links->nccl;
    g_autoptr(GError) error = NULL;

    return done(j, nccl->CommFinalize(comm), "the end of a communicator", &error) &&
           settle_comm(j, comm, "the end of a communicator", &error) &&
           nccl->CommDestroy(comm) == ncclSuccess;
}

static void
leave_comms(Joined *j)
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
    Joined *j = joined;

    set_stage(j, AT_END);
    if (!j->aborted)
        leave_comms(j);
    if (j->world != NULL)
        nccl_abort(j);
    joined_free(j);
}

const LhLinks lh_links_nccl = {
    .name = "nccl",
    .needs_both = false,
    .one_queue = true,
    .describe = nccl_library,
    .open = nccl_open,
    .join = nccl_join,
    .exchange = nccl_exchange,
    .collectives = nccl_collectives,
    .failed = nccl_failed,
    .abort = nccl_abort,
    .leave = nccl_leave,
    .close = nccl_close,
};
