/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for NCCL on the stand-in for CUDA's runtime, built as a library that is loaded in its
 * place. Ranks may be threads or processes: they share a file in /dev/shm, named by the unique id.
 *
 * Modelled behaviour (NCCL 2.28 User Guide, "the guide" below, and the source files named):
 * - "ncclCommInitRankConfig ... blocking: 0: the communicator is nonblocking": calls return
 *   ncclInProgress, and ncclCommGetAsyncError reports when they are complete. "It is prohibited to
 *   issue any other NCCL calls on the communicator" until then (Using Nonblocking Communicators).
 * - "Point-to-point ... calls within a group": all parts of a group progress concurrently; groups
 *   of one communicator run one after the other, in the order of the calls, whatever their streams.
 * - The k-th ncclSend of a rank to another matches the other's k-th ncclRecv from it. "Sends and
 *   receives have to have the same count and datatype" (ncclSend).
 * - The first message between two ranks connects them, which needs both hosts: a group is enqueued
 *   when its pairs are connected (src/group.cc, ncclP2PPreconnectFunc).
 * - "Using the same CUDA device multiple times as different ranks of the same NCCL communicator is
 *   not supported and may lead to hangs" (Creating a Communicator); init rejects it (src/init.cc).
 * - ncclCommFinalize completes when every rank has called it and all its work is done;
 *   ncclCommAbort ends the work on the device, on this rank only.
 *
 * STANDIN_NCCL in the environment injects failures: "error=R:N" (rank R has an asynchronous error
 * in its N-th group), "silent=R" (it never connects), "exit=R:N" (its process exits), "hang=R" (it
 * never joins), "stop=R:N" (its process stops and writes its id to the file named by STOP_PID; N =
 * 0: when it joins).
 */
#include "ptx_float.h"
#include "standin_private.h"

#include <fcntl.h>
#include <nccl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS_MAX 16
#define SPLITS_MAX 64
#define DATA_BYTES (UINT32_C(1) << 20) /* of a message, or of one rank's part of a collective */
#define NAME_BYTES 100
#define GONE_STATUS 9
#define VERSION 22809
#define BUSY_IN 3 /* one group in this many is still launching when the call returns */

/* ---- state shared by ranks ---- */

/* Messages from one rank to another, one at a time. */
typedef struct {
    atomic_uint posted, taken; /* counts */
    ncclDataType_t type;
    uint64_t bytes, group_bytes; /* total of the sender's group for this receiver */
    double begin_s, end_s;
    pid_t process;
    StandinOp *op; /* of @process */
    unsigned char data[DATA_BYTES];
} Mail;

typedef enum {
    ALL_GATHER,
    ALL_REDUCE,
    REDUCE_SCATTER,
    BROADCAST,
} CollectiveKind;

static const char *const collective_names[] = { "all-gather", "all-reduce", "reduce-scatter",
                                                "broadcast" };

/* One rank's part of a collective. */
typedef struct {
    atomic_uint posted, read; /* collectives posted; reads of the current one by any rank */
    CollectiveKind kind;
    ncclDataType_t type;
    uint64_t count;
    int root, reduction;
    double begin_s;
    pid_t process;
    StandinOp *op;
    unsigned char data[DATA_BYTES];
} Share;

typedef struct {
    atomic_uint joined, finalized;
    int members[RANKS_MAX], devices[RANKS_MAX]; /* process and device of each rank */
    atomic_uint splits[RANKS_MAX];              /* splits called for so far */
    int colors[SPLITS_MAX][RANKS_MAX], keys[SPLITS_MAX][RANKS_MAX];
    atomic_bool sends[RANKS_MAX]
                     [RANKS_MAX]; /* [from][to]: the sender has arrived; the receiver has */
    atomic_bool receives[RANKS_MAX][RANKS_MAX];
    atomic_bool meets[RANKS_MAX];
    Mail mails[RANKS_MAX][RANKS_MAX];
    Share shares[RANKS_MAX];
} Shared;

/* ---- state of a rank ---- */

typedef enum {
    SEND,
    RECEIVE,
    COLLECTIVE,
} CallKind;

/* A call, later a part of an op. */
typedef struct {
    CallKind kind;
    ncclComm_t comm;
    cudaStream_t stream;
    int peer;
    const void *from;
    void *to;
    uint64_t count;
    ncclDataType_t type;
    CollectiveKind collective;
    int root, reduction;
    unsigned number; /* index among the calls of its kind with this peer */
    bool posted, read, done;
} Call;

typedef enum {
    JOINING,
    READY,
    SPLITTING,
    CONNECTING,
    FINALIZING,
    FINALIZED,
    ABORTED,
    DESTROYED,
} State;

struct ncclComm {
    ncclComm_t next;   /* in the list of all communicators */
    ncclComm_t parent; /* the communicator it was split from, or NULL */
    char name[NAME_BYTES];
    Shared *shared;
    int ranks, rank, world_rank, device;
    State state;
    ncclResult_t error;
    unsigned sent[RANKS_MAX], received[RANKS_MAX], collectives, splits;
    unsigned launched, finished; /* groups */
    GArray *pending;             /* of Call, while connecting */
    ncclComm_t *child;           /* where a split stores the new communicator */
    int color;
};

typedef struct {
    StandinOp op;
    ncclComm_t comm;
    unsigned order;
    uint32_t turn; /* of accesses; 0: not yet begun */
    Call *calls;
    uint32_t count;
} GroupOp;

static ncclComm_t comms;
static __thread GArray *group; /* of Call */
static __thread int depth;
static __thread char last_error[300];

static ncclResult_t
refuse(ncclResult_t result, const char *text)
{
    g_strlcpy(last_error, text, sizeof(last_error));
    return result;
}

static uint64_t
bytes_of(const Call *c)
{
    static const uint8_t sizes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

    return c->count * sizes[c->type];
}

/* Whether STANDIN_NCCL requests @what for the rank, as in "error=2:5"; the number after the colon
 * goes to @number. */
static bool
is_asked(const char *what, int world_rank, unsigned *number)
{
    const char *text = g_getenv("STANDIN_NCCL");
    const size_t length = strlen(what);
    char *end;

    if (text == NULL || strncmp(text, what, length) != 0 || text[length] != '=' ||
        strtol(text + length + 1, &end, 10) != world_rank)
        return false;
    *number = *end == ':' ? (unsigned)strtoul(end + 1, NULL, 10) : 0;
    return true;
}

/* Stops the process, as if its node hung. */
static void
stop(void)
{
    FILE *file = fopen(g_getenv("STOP_PID"), "w");

    if (file != NULL) {
        fprintf(file, "%d\n", (int)getpid());
        fclose(file);
    }
    raise(SIGSTOP);
}

/* ---- ops ---- */

/* Groups of a communicator run one after the other, in the order of the calls. */
static bool
start_group(StandinOp *op)
{
    const GroupOp *g = (GroupOp *)op;
    unsigned number;

    if (g->comm->state == ABORTED)
        return true;
    if (g->order != g->comm->finished)
        return false;
    if (is_asked("exit", g->comm->world_rank, &number) && g->comm->launched >= number)
        _exit(GONE_STATUS);
    if (is_asked("stop", g->comm->world_rank, &number) && g->comm->launched >= number)
        stop();
    if (is_asked("error", g->comm->world_rank, &number) && g->comm->launched >= number) {
        g->comm->error = ncclRemoteError;
        return false;
    }
    return true;
}

static Mail *
mail_of(const Call *c)
{
    Shared *s = c->comm->shared;

    return c->kind == SEND ? &s->mails[c->comm->rank][c->peer] : &s->mails[c->peer][c->comm->rank];
}

static bool
all_posted(const Call *c)
{
    for (int i = 0; i < c->comm->ranks; i++) {
        if (atomic_load(&c->comm->shared->shares[i].posted) <= c->number)
            return false;
    }
    return true;
}

static bool
can_go_on(const Call *c)
{
    const unsigned ranks = (unsigned)c->comm->ranks;
    const Mail *m;
    const Share *own;

    if (c->done)
        return false;
    if (c->kind == COLLECTIVE) {
        own = &c->comm->shared->shares[c->comm->rank];
        if (!c->posted)
            return atomic_load(&own->read) == c->number * ranks;
        if (!c->read)
            return all_posted(c);
        return atomic_load(&own->read) >= (c->number + 1) * ranks;
    }
    m = mail_of(c);
    if (c->kind == RECEIVE)
        return atomic_load(&m->posted) == c->number + 1;
    return c->posted ? atomic_load(&m->taken) > c->number : atomic_load(&m->taken) == c->number;
}

static bool
group_is_ready(StandinOp *op)
{
    const GroupOp *g = (GroupOp *)op;

    if (g->comm->state == ABORTED)
        return true;
    for (uint32_t i = 0; i < g->count; i++) {
        if (can_go_on(&g->calls[i]))
            return true;
    }
    return false;
}

/* Messages of a group to one rank share the path. */
static uint64_t
bytes_to(const GroupOp *g, int peer)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < g->count; i++) {
        if (g->calls[i].kind == SEND && g->calls[i].peer == peer)
            bytes += bytes_of(&g->calls[i]);
    }
    return bytes;
}

static void
send_on(GroupOp *g, Call *c)
{
    Mail *m = mail_of(c);

    if (c->posted) {
        c->done = true;
        g->op.end_s = MAX(g->op.end_s, m->end_s);
        return;
    }
    m->bytes = bytes_of(c);
    m->group_bytes = bytes_to(g, c->peer);
    m->type = c->type;
    m->begin_s = g->op.begin_s;
    m->process = getpid();
    m->op = &g->op;
    if (standin_is_idle())
        ; /* nothing is moved */
    else if (m->bytes > DATA_BYTES)
        standin_finding("a message of %" G_GUINT64_FORMAT " bytes is too long for the stand-in",
                        m->bytes);
    else if (standin_touch(&g->op, g->turn, c->from, m->bytes, false))
        memcpy(m->data, c->from, m->bytes);
    standin_counted.messages++;
    c->posted = true;
    atomic_store(&m->posted, c->number + 1);
}

/* Both ends come after everything before the other end. */
static void
meet(GroupOp *g, StandinOp *other, pid_t process)
{
    if (process != getpid() || other == &g->op || other == NULL)
        return;
    standin_join_start(&g->op, other);
    standin_join_start(other, &g->op);
}

static void
receive_on(GroupOp *g, Call *c)
{
    Mail *m = mail_of(c);
    const uint64_t bytes = MIN(bytes_of(c), MIN(m->bytes, DATA_BYTES));

    if (bytes_of(c) != m->bytes || c->type != m->type)
        standin_finding("rank %d sends %" G_GUINT64_FORMAT " bytes (type %d) to rank %d as message "
                        "%u, which receives %" G_GUINT64_FORMAT " (type %d)",
                        c->peer, m->bytes, (int)m->type, c->comm->rank, c->number, bytes_of(c),
                        (int)c->type);
    meet(g, m->op, m->process);
    if (!standin_is_idle() && standin_touch(&g->op, g->turn, c->to, bytes, true))
        memcpy(c->to, m->data, bytes);
    m->end_s = MAX(m->begin_s, g->op.begin_s) + standin_message_s(m->group_bytes);
    g->op.end_s = MAX(g->op.end_s, m->end_s);
    c->done = true;
    atomic_store(&m->taken, c->number + 1);
}

static void
post_share(GroupOp *g, Call *c)
{
    Share *own = &c->comm->shared->shares[c->comm->rank];
    const uint64_t bytes =
        bytes_of(c) * (c->collective == REDUCE_SCATTER ? (uint64_t)c->comm->ranks : 1);
    const bool gives = c->collective != BROADCAST || c->root == c->comm->rank;

    own->kind = c->collective;
    own->type = c->type;
    own->count = c->count;
    own->root = c->root;
    own->reduction = c->reduction;
    own->begin_s = g->op.begin_s;
    own->process = getpid();
    own->op = &g->op;
    if (standin_is_idle())
        ; /* nothing is moved */
    else if (bytes > DATA_BYTES)
        standin_finding("a collective of %" G_GUINT64_FORMAT " bytes is too long for the stand-in",
                        bytes);
    else if (gives && standin_touch(&g->op, g->turn, c->from, bytes, false))
        memcpy(own->data, c->from, bytes);
    c->posted = true;
    atomic_store(&own->posted, c->number + 1);
}

static void
compare_shares(const Call *c, int member)
{
    const Share *s = &c->comm->shared->shares[member];

    if (s->kind != c->collective || s->type != c->type || s->count != c->count ||
        s->root != c->root || s->reduction != c->reduction)
        standin_finding("collective %u: rank %d calls %s of %" G_GUINT64_FORMAT
                        " elements (type %d, root %d, op %d), rank %d %s of %" G_GUINT64_FORMAT
                        " (type %d, root %d, op %d)",
                        c->number, c->comm->rank, collective_names[c->collective], c->count,
                        (int)c->type, c->root, c->reduction, member, collective_names[s->kind],
                        s->count, (int)s->type, s->root, s->reduction);
}

static float
element(const void *data, ncclDataType_t type, uint64_t index)
{
    const uint16_t half = type == ncclFloat32 ? 0 : ((const uint16_t *)data)[index];

    if (type == ncclFloat32)
        return ((const float *)data)[index];
    return type == ncclFloat16 ? ptx_from_f16(half) : ptx_from_bf16(half);
}

static void
put_element(void *data, ncclDataType_t type, uint64_t index, float value)
{
    if (type == ncclFloat32)
        ((float *)data)[index] = value;
    else if (type == ncclFloat16)
        ((uint16_t *)data)[index] = ptx_to_f16(value);
    else
        ((uint16_t *)data)[index] = ptx_to_bf16(value);
}

/* Adds in an order that depends on the rank, since NCCL guarantees none, and rounds every sum. */
static void
sum_shares(const Call *c, uint64_t first)
{
    if ((c->type != ncclFloat32 && c->type != ncclBfloat16 && c->type != ncclFloat16) ||
        c->reduction != ncclSum) {
        standin_finding("a reduction that the stand-in does not know");
        return;
    }
    for (uint64_t k = 0; k < c->count; k++) {
        put_element(c->to, c->type, k, 0);
        for (int i = 0; i < c->comm->ranks; i++) {
            const Share *s = &c->comm->shared->shares[(c->comm->rank + i) % c->comm->ranks];

            put_element(c->to, c->type, k,
                        element(c->to, c->type, k) + element(s->data, c->type, first + k));
        }
    }
}

static void
read_shares(GroupOp *g, Call *c)
{
    Shared *s = c->comm->shared;
    const int ranks = c->comm->ranks;
    const uint64_t bytes = bytes_of(c);
    const uint64_t given = bytes * (c->collective == ALL_GATHER ? (uint64_t)ranks : 1);
    double begin_s = 0;

    for (int i = 0; i < ranks; i++) {
        compare_shares(c, i);
        meet(g, s->shares[i].op, s->shares[i].process);
        begin_s = MAX(begin_s, s->shares[i].begin_s);
    }
    g->op.end_s = MAX(g->op.end_s, begin_s + standin_collective_s(bytes));
    if (!standin_is_idle() && given <= DATA_BYTES * RANKS_MAX &&
        standin_touch(&g->op, g->turn, c->to, given, true)) {
        if (c->collective == BROADCAST)
            memcpy(c->to, s->shares[c->root].data, bytes);
        for (int i = 0; c->collective == ALL_GATHER && i < ranks; i++)
            memcpy((char *)c->to + (uint64_t)i * bytes, s->shares[i].data, bytes);
        if (c->collective == ALL_REDUCE)
            sum_shares(c, 0);
        if (c->collective == REDUCE_SCATTER)
            sum_shares(c, (uint64_t)c->comm->rank * c->count);
    }
    c->read = true;
    for (int i = 0; i < ranks; i++)
        atomic_fetch_add(&s->shares[i].read, 1);
}

static void
go_on(GroupOp *g, Call *c)
{
    if (c->kind == SEND)
        send_on(g, c);
    else if (c->kind == RECEIVE)
        receive_on(g, c);
    else if (!c->posted)
        post_share(g, c);
    else if (!c->read)
        read_shares(g, c);
    else
        c->done = true;
}

/* Removes an ending op from shared state. If it was aborted, receivers may still take what it
 * posted, but without the op. */
static void
withdraw(const GroupOp *g)
{
    for (uint32_t i = 0; i < g->count; i++) {
        const Call *c = &g->calls[i];
        StandinOp **op =
            c->kind == COLLECTIVE ? &c->comm->shared->shares[c->comm->rank].op : &mail_of(c)->op;

        if (c->kind != RECEIVE && c->posted && *op == &g->op)
            *op = NULL;
    }
}

static bool
run_group(StandinOp *op)
{
    GroupOp *g = (GroupOp *)op;
    bool all = true;

    if (g->turn == 0)
        g->turn = standin_turn(op);
    for (uint32_t i = 0; i < g->count && g->comm->state != ABORTED; i++) {
        if (can_go_on(&g->calls[i]))
            go_on(g, &g->calls[i]);
        all = all && g->calls[i].done;
    }
    return all || g->comm->state == ABORTED;
}

static void
end_of_group(StandinOp *op)
{
    GroupOp *g = (GroupOp *)op;

    withdraw(g);
    g->comm->finished++;
}

static void
describe_group(const StandinOp *op, GString *text)
{
    const GroupOp *g = (const GroupOp *)op;

    for (uint32_t i = 0; i < g->count; i++) {
        const Call *c = &g->calls[i];

        if (c->done)
            continue;
        if (c->kind == COLLECTIVE)
            g_string_append_printf(text, "; %s %u", collective_names[c->collective], c->number);
        else
            g_string_append_printf(text, "; message %u %s rank %d", c->number,
                                   c->kind == SEND ? "to" : "from", c->peer);
    }
}

static void
clear_group(StandinOp *op)
{
    g_free(((GroupOp *)op)->calls);
}

static const StandinKind kind_group = {
    .name = "nccl group",
    .start = start_group,
    .ready = group_is_ready,
    .run = run_group,
    .end = end_of_group,
    .describe = describe_group,
    .clear = clear_group,
    .call = STANDIN_GROUP,
};

/* ---- communicators ---- */

static Shared *
map_file(const char *name)
{
    const int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
    void *memory;

    if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0)
        g_error("the stand-in cannot make /dev/shm%s", name);
    memory = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED)
        g_error("the stand-in cannot map /dev/shm%s", name);
    return memory;
}

static ncclComm_t
comm_new(const char *name, int ranks, int rank, int world_rank)
{
    ncclComm_t comm = g_new0(struct ncclComm, 1);

    g_strlcpy(comm->name, name, sizeof(comm->name));
    comm->ranks = ranks;
    comm->rank = rank;
    comm->world_rank = world_rank;
    comm->device = standin_device;
    comm->shared = map_file(name);
    comm->pending = g_array_new(FALSE, FALSE, sizeof(Call));
    comm->shared->members[rank] = (int)getpid();
    comm->shared->devices[rank] = standin_device;
    comm->next = comms;
    comms = comm;
    if (!is_asked("hang", world_rank, &(unsigned){ 0 }))
        atomic_fetch_add(&comm->shared->joined, 1);
    return comm;
}

/* All ranks have joined. */
static void
begin(ncclComm_t comm)
{
    const Shared *s = comm->shared;

    shm_unlink(comm->name); /* only one rank's call succeeds */
    for (int i = 0; i < comm->ranks; i++) {
        for (int k = 0; k < i; k++) {
            if (s->members[i] == s->members[k] && s->devices[i] == s->devices[k])
                comm->error = refuse(ncclInvalidUsage, "Duplicate GPU detected");
        }
    }
    comm->state = READY;
}

/* Whether all ranks have called for the split; if so creates the communicator. */
static bool
split(ncclComm_t comm)
{
    const Shared *s = comm->shared;
    const unsigned number = comm->splits - 1;
    const int key = s->keys[number][comm->rank];
    g_autofree char *name = NULL;
    int ranks = 0, rank = 0, device = standin_device;

    for (int i = 0; i < comm->ranks; i++) {
        if (atomic_load(&s->splits[i]) < comm->splits)
            return false;
    }
    if (comm->color == NCCL_SPLIT_NOCOLOR)
        return true;
    for (int i = 0; i < comm->ranks; i++) {
        if (s->colors[number][i] != comm->color)
            continue;
        ranks++;
        rank += s->keys[number][i] < key || (s->keys[number][i] == key && i < comm->rank);
    }
    name = g_strdup_printf("%s-%u-%d", comm->name, number, comm->color);
    standin_device = comm->device;
    *comm->child = comm_new(name, ranks, rank, comm->world_rank);
    (*comm->child)->parent = comm;
    standin_device = device;
    return true;
}

static void
enqueue_group(ncclComm_t comm, const GArray *calls)
{
    /* One op per stream, in the order of the first calls. */
    for (guint i = 0; i < calls->len; i++) {
        const cudaStream_t stream = g_array_index(calls, Call, i).stream;
        GroupOp *g;
        bool first = true;

        for (guint k = 0; k < i; k++)
            first = first && g_array_index(calls, Call, k).stream != stream;
        if (!first)
            continue;
        g = standin_op_new(&kind_group, stream, sizeof(GroupOp),
                           g_strdup_printf("nccl group %u of rank %d", comm->launched, comm->rank));
        g->comm = comm;
        g->order = comm->launched++;
        g->calls = g_new0(Call, calls->len);
        for (guint k = i; k < calls->len; k++) {
            const Call *c = &g_array_index(calls, Call, k);

            if (c->stream == stream)
                g->calls[g->count++] = *c;
        }
        standin_enqueue(&g->op);
    }
}

static bool
is_connected(const Call *c)
{
    Shared *s = c->comm->shared;

    if (c->kind == SEND)
        return atomic_load(&s->receives[c->comm->rank][c->peer]);
    if (c->kind == RECEIVE)
        return atomic_load(&s->sends[c->peer][c->comm->rank]);
    for (int i = 0; i < c->comm->ranks; i++) {
        if (!atomic_load(&s->meets[i]))
            return false;
    }
    return true;
}

/* Enqueues pending groups if all their pairs are connected. */
static bool
connect_pending(ncclComm_t comm)
{
    for (guint i = 0; i < comm->pending->len; i++) {
        if (!is_connected(&g_array_index(comm->pending, Call, i)))
            return false;
    }
    enqueue_group(comm, comm->pending);
    g_array_set_size(comm->pending, 0);
    return true;
}

/* Records that this host has arrived. */
static void
announce(const Call *c)
{
    Shared *s = c->comm->shared;

    if (is_asked("silent", c->comm->world_rank, &(unsigned){ 0 }))
        return;
    if (c->kind == SEND)
        atomic_store(&s->sends[c->comm->rank][c->peer], true);
    else if (c->kind == RECEIVE)
        atomic_store(&s->receives[c->peer][c->comm->rank], true);
    else
        atomic_store(&s->meets[c->comm->rank], true);
}

static void
progress(ncclComm_t comm)
{
    if (comm->state == JOINING && (int)atomic_load(&comm->shared->joined) == comm->ranks)
        begin(comm);
    else if (comm->state == SPLITTING && split(comm))
        comm->state = READY;
    else if (comm->state == CONNECTING && connect_pending(comm))
        comm->state = READY;
    else if (comm->state == FINALIZING && comm->launched == comm->finished &&
             (int)atomic_load(&comm->shared->finalized) == comm->ranks)
        comm->state = FINALIZED;
}

/* Checks a call on a communicator that is busy, broken or gone. */
static ncclResult_t
check_comm(ncclComm_t comm, const char *call)
{
    if (comm != NULL && comm->error != ncclSuccess)
        return comm->error;
    if (comm != NULL && comm->state == READY)
        return ncclSuccess;
    standin_finding("%s on a communicator that is %s", call,
                    comm == NULL                ? "none"
                    : comm->state >= FINALIZED  ? "gone"
                    : comm->state == FINALIZING ? "finalized"
                                                : "not ready");
    return refuse(ncclInvalidUsage, "communicator is not ready");
}

/* ---- groups ---- */

static ncclResult_t
check_call(const Call *c)
{
    const uint64_t bytes = bytes_of(c);
    const void *memory = c->kind == RECEIVE ? c->to : c->from;
    int device = -1;
    const ncclResult_t ready = check_comm(c->comm, "a call");

    if (ready != ncclSuccess)
        return ready;
    if (c->kind != COLLECTIVE && (c->peer < 0 || c->peer >= c->comm->ranks))
        return refuse(ncclInvalidArgument, "invalid peer");
    if (c->stream == NULL || c->stream->device != c->comm->device)
        standin_finding("rank %d calls NCCL on a stream of another device", c->comm->rank);
    if (bytes > 0 && memory != NULL &&
        (standin_memory_room(memory, &device) < bytes || device != c->comm->device))
        standin_finding("rank %d gives NCCL memory that is not its device's", c->comm->rank);
    return ncclSuccess;
}

static void
number_call(Call *c)
{
    if (c->kind == SEND)
        c->number = c->comm->sent[c->peer]++;
    else if (c->kind == RECEIVE)
        c->number = c->comm->received[c->peer]++;
    else
        c->number = c->comm->collectives++;
}

/* Collects the calls of the group on @comm. */
static ncclResult_t
launch(ncclComm_t comm)
{
    bool connected = true;

    for (guint i = 0; i < group->len; i++) {
        Call *c = &g_array_index(group, Call, i);

        if (c->comm != comm)
            continue;
        number_call(c);
        announce(c);
        connected = connected && is_connected(c);
        g_array_append_vals(comm->pending, c, 1);
    }
    if (connected && connect_pending(comm)) {
        if (standin_random() % BUSY_IN != 0)
            return ncclSuccess;
        comm->state = CONNECTING; /* still in progress, until the host queries it */
        return ncclInProgress;
    }
    /* Legal, but makes hosts wait for each other during a run. */
    if (comm->parent != NULL && comm->parent->collectives > 0)
        standin_finding("rank %d makes a connection only when it needs it", comm->rank);
    comm->state = CONNECTING;
    return ncclInProgress;
}

static ncclResult_t
end_group(void)
{
    ncclResult_t result = ncclSuccess;

    standin_lock();
    for (guint i = 0; i < group->len && result == ncclSuccess; i++)
        result = check_call(&g_array_index(group, Call, i));
    for (guint i = 0; i < group->len && (result == ncclSuccess || result == ncclInProgress); i++) {
        const ncclComm_t comm = g_array_index(group, Call, i).comm;
        bool first = true;

        for (guint k = 0; k < i; k++)
            first = first && g_array_index(group, Call, k).comm != comm;
        if (first && launch(comm) == ncclInProgress)
            result = ncclInProgress;
    }
    g_clear_pointer(&group, g_array_unref);
    standin_moved();
    standin_unlock();
    return result;
}

static ncclResult_t
add(Call call)
{
    if (group == NULL)
        group = g_array_new(FALSE, FALSE, sizeof(Call));
    g_array_append_val(group, call);
    return depth > 0 ? ncclSuccess : end_group();
}

/* nccl.h declares these two without parameters. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t
ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

ncclResult_t
ncclGroupEnd(void)
{
    if (depth == 0)
        return refuse(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
    if (--depth > 0 || group == NULL || group->len == 0)
        return ncclSuccess;
    return end_group();
}

ncclResult_t
ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
         cudaStream_t stream)
{
    return add((Call){ .kind = SEND,
                       .comm = comm,
                       .stream = stream,
                       .peer = peer,
                       .from = from,
                       .count = count,
                       .type = type });
}

ncclResult_t
ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
         cudaStream_t stream)
{
    return add((Call){ .kind = RECEIVE,
                       .comm = comm,
                       .stream = stream,
                       .peer = peer,
                       .to = to,
                       .count = count,
                       .type = type });
}

static ncclResult_t
add_collective(CollectiveKind kind, Call call)
{
    call.kind = COLLECTIVE;
    call.collective = kind;
    return add(call);
}

ncclResult_t
ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
              cudaStream_t stream)
{
    return add_collective(
        ALL_GATHER,
        (Call){
            .comm = comm, .stream = stream, .from = from, .to = to, .count = count, .type = type });
}

ncclResult_t /* NOLINTNEXTLINE(readability-function-size): NCCL's own */
ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
              ncclComm_t comm, cudaStream_t stream)
{
    return add_collective(ALL_REDUCE, (Call){ .comm = comm,
                                              .stream = stream,
                                              .from = from,
                                              .to = to,
                                              .count = count,
                                              .type = type,
                                              .reduction = (int)op });
}

ncclResult_t /* NOLINTNEXTLINE(readability-function-size): NCCL's own */
ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                  ncclComm_t comm, cudaStream_t stream)
{
    return add_collective(REDUCE_SCATTER, (Call){ .comm = comm,
                                                  .stream = stream,
                                                  .from = from,
                                                  .to = to,
                                                  .count = count,
                                                  .type = type,
                                                  .reduction = (int)op });
}

ncclResult_t /* NOLINTNEXTLINE(readability-function-size): NCCL's own */
ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
              ncclComm_t comm, cudaStream_t stream)
{
    return add_collective(BROADCAST, (Call){ .comm = comm,
                                             .stream = stream,
                                             .from = from,
                                             .to = to,
                                             .count = count,
                                             .type = type,
                                             .root = root });
}

/* ---- the rest of the API ---- */

ncclResult_t
ncclGetVersion(int *version)
{
    *version = VERSION;
    return ncclSuccess;
}

const char *
ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };

    return result < ncclNumResults ? texts[result] : "unknown result code";
}

const char *
ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

static char id_name[NAME_BYTES];

/* Removes the shared file of a communicator that not all ranks joined. */
static void
remove_file(void)
{
    shm_unlink(id_name);
}

ncclResult_t
ncclGetUniqueId(ncclUniqueId *id)
{
    static atomic_uint ids;

    memset(id, 0, sizeof(*id));
    if (id_name[0] == '\0')
        atexit(remove_file);
    snprintf(id->internal, NAME_BYTES, "/longhaul-nccl-%d-%u", (int)getpid(),
             atomic_fetch_add(&ids, 1));
    g_strlcpy(id_name, id->internal, sizeof(id_name));
    return ncclSuccess;
}

ncclResult_t
ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    unsigned number;

    if (ranks < 1 || ranks > RANKS_MAX || rank < 0 || rank >= ranks)
        return refuse(ncclInvalidArgument, "invalid rank");
    if (is_asked("stop", rank, &number) && number == 0)
        stop();
    standin_lock();
    if (config == NULL || config->blocking != 0)
        standin_finding("a communicator whose calls block");
    *comm = comm_new(id.internal, ranks, rank, rank);
    progress(*comm);
    standin_moved();
    standin_unlock();
    return ncclInProgress;
}

ncclResult_t
ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config)
{
    ncclResult_t result;

    (void)config;
    standin_lock();
    result = check_comm(comm, "ncclCommSplit");
    if (result == ncclSuccess) {
        g_assert(comm->splits < SPLITS_MAX);
        *child = NULL;
        comm->child = child;
        comm->color = color;
        comm->shared->colors[comm->splits][comm->rank] = color;
        comm->shared->keys[comm->splits][comm->rank] = key;
        comm->splits++;
        atomic_store(&comm->shared->splits[comm->rank], comm->splits);
        comm->state = SPLITTING;
        result = ncclInProgress;
    }
    standin_moved();
    standin_unlock();
    return result;
}

#define ASKING_WORKS_IN 3

ncclResult_t
ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    State state;

    standin_lock();
    state = comm->state;
    if (standin_random() % ASKING_WORKS_IN == 0)
        standin_work();
    if (comm->state >= ABORTED)
        standin_finding("a communicator is asked that is gone");
    progress(comm);
    *error = comm->error != ncclSuccess                         ? comm->error
             : comm->state == READY || comm->state >= FINALIZED ? ncclSuccess
                                                                : ncclInProgress;
    if (*error == ncclInProgress)
        standin_asked_in_vain(comm);
    else if (state != comm->state)
        standin_moved();
    standin_unlock();
    return ncclSuccess;
}

ncclResult_t
ncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t result;

    standin_lock();
    result = check_comm(comm, "ncclCommFinalize");
    if (result == ncclSuccess) {
        comm->state = FINALIZING;
        atomic_fetch_add(&comm->shared->finalized, 1);
        result = ncclInProgress;
    }
    standin_moved();
    standin_unlock();
    return result;
}

ncclResult_t
ncclCommDestroy(ncclComm_t comm)
{
    standin_lock();
    if (comm->state != FINALIZED)
        standin_finding("a communicator is destroyed that is not finalized: the host would wait");
    comm->state = DESTROYED;
    standin_unlock();
    return ncclSuccess;
}

ncclResult_t
ncclCommAbort(ncclComm_t comm)
{
    standin_lock();
    if (comm->state >= ABORTED)
        standin_finding("a communicator is aborted that is gone");
    comm->state = ABORTED;
    comm->pending->len = 0;
    while (standin_work())
        continue;
    standin_moved();
    standin_unlock();
    return ncclSuccess;
}

/* For tests: frees all communicators, which no op uses any more; returns how many were neither
 * destroyed nor aborted. */
unsigned standin_nccl_end(void);

unsigned
standin_nccl_end(void)
{
    unsigned alive = 0;

    standin_lock();
    while (comms != NULL) {
        ncclComm_t comm = comms;

        comms = comm->next;
        alive += comm->state < ABORTED;
        munmap(comm->shared, sizeof(Shared));
        g_array_unref(comm->pending);
        g_free(comm);
    }
    standin_unlock();
    return alive;
}
