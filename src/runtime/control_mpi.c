/*
 * One rank a process, started by mpirun or srun. What processes tell each other goes to the first
 * one and comes back from it, so that it knows which of them is missing; on a communicator of its
 * own, apart from the messages of programs.
 */
#include "runtime/control.h"
#include "runtime/mpi_world.h"
#include "runtime/units.h"

#include "base/error.h"

#include <mpi.h>

#define ABORT_GRACE_US 1000000
#define BATCH_LOOK_US 50
#define PIECE_BYTES_MAX (1u << 30) /* counts of MPI are int */

typedef struct {
    MPI_Comm comm;
    int rank, size;
    const char *phase; /* what the processes are at, for messages: "the barrier" */
} Control;

/* One communicator for all openings of a process. */
static MPI_Comm own_comm = MPI_COMM_NULL;

static bool
learn_place(Control *c, GError **error)
{
    bool ok = true;

    lh_mpi_enter("the opening of the control plane (MPI_Comm_dup)");
    if (own_comm == MPI_COMM_NULL)
        ok = lh_mpi_ok(MPI_Comm_dup(MPI_COMM_WORLD, &own_comm), "cannot duplicate a communicator",
                       error) &&
             lh_mpi_ok(MPI_Comm_set_errhandler(own_comm, MPI_ERRORS_RETURN),
                       "cannot ask for errors", error);
    c->comm = own_comm;
    ok = ok && lh_mpi_ok(MPI_Comm_size(c->comm, &c->size), "cannot count the processes", error) &&
         lh_mpi_ok(MPI_Comm_rank(c->comm, &c->rank), "cannot find its rank", error);
    lh_mpi_leave();
    return ok;
}

static void *
mpi_control_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    g_autofree Control *c = g_new0(Control, 1);

    if (!lh_mpi_start(deadline_us, error) || !learn_place(c, error))
        return NULL;
    if (ranks != 0 && (uint32_t)c->size != ranks) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "there are %d processes for %u ranks; start it as: mpirun -n %u longhaul run ...",
            c->size, ranks, ranks);
        return NULL;
    }
    *place = (LhControlPlace){ .first = (uint32_t)c->rank, .count = 1 };
    return g_steal_pointer(&c);
}

/* ---- messages with a deadline ---- */

/* Messages under way, and whom each is from or to. */
typedef struct {
    const Control *control;
    GArray *requests; /* of MPI_Request */
    GArray *peers;    /* of int */
} Batch;

static Batch
batch_new(const Control *c)
{
    return (Batch){ .control = c,
                    .requests = g_array_new(FALSE, FALSE, sizeof(MPI_Request)),
                    .peers = g_array_new(FALSE, FALSE, sizeof(int)) };
}

static void
batch_clear(Batch *b)
{
    g_array_unref(b->requests);
    g_array_unref(b->peers);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Batch, batch_clear)

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): the request is waited for elsewhere. */
/* Sends or receives @bytes, in pieces. */
static bool
batch_add(Batch *b, bool send, int peer, void *data, uint64_t bytes, GError **error)
{
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES_MAX) {
        const int count = (int)MIN(bytes - at, PIECE_BYTES_MAX);
        char *from = (char *)data + at;
        MPI_Request request;
        const int code =
            send ? MPI_Isend(from, count, MPI_BYTE, peer, 0, b->control->comm, &request)
                 : MPI_Irecv(from, count, MPI_BYTE, peer, 0, b->control->comm, &request);

        if (!lh_mpi_ok(code, b->control->phase, error))
            return false;
        g_array_append_val(b->requests, request);
        g_array_append_val(b->peers, peer);
    }
    return true;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* Names the ranks whose messages are not done. Returns false. */
static bool
give_up_batch(const Batch *b, int64_t waited_us, GError **error)
{
    g_autoptr(GArray) missing = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree char *names = NULL;

    for (guint i = 0; i < b->requests->len; i++) {
        const uint32_t peer = (uint32_t)g_array_index(b->peers, int, i);

        if (g_array_index(b->requests, MPI_Request, i) != MPI_REQUEST_NULL)
            g_array_append_val(missing, peer);
    }
    names = lh_control_ranks_text(missing);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank %d has waited for %.3g s in %s for %s",
                b->control->rank, (double)waited_us / LH_US_PER_S, b->control->phase, names);
    return false;
}

static bool
batch_wait(Batch *b, GError **error)
{
    const int64_t started_us = g_get_monotonic_time();
    int done = 0;

    for (;;) {
        const int64_t waited_us = g_get_monotonic_time() - started_us;
        bool ok = true;

        lh_mpi_enter(b->control->phase);
        /* One by one: those that are done become null, and the others are the missing ones. */
        done = 1;
        for (guint i = 0; ok && i < b->requests->len; i++) {
            int one = 0;

            ok = lh_mpi_ok(
                MPI_Test(&g_array_index(b->requests, MPI_Request, i), &one, MPI_STATUS_IGNORE),
                b->control->phase, error);
            done = done && one;
        }
        lh_mpi_leave();
        if (!ok || done)
            return ok;
        if (waited_us > lh_mpi_deadline_us())
            return give_up_batch(b, waited_us, error);
        g_usleep(BATCH_LOOK_US);
    }
}

/* To the first process from all others, or from it to them: @lengths by rank, or, if there are
 * @data, as many bytes. */
static bool
move_bytes(const Control *c, bool to_first, uint64_t *lengths, unsigned char **data, GError **error)
{
    const bool send = to_first == (c->rank != 0);
    const int first = c->rank == 0 ? 1 : 0, end = c->rank == 0 ? c->size : 1;
    g_auto(Batch) batch = batch_new(c);

    for (int peer = first; peer < end; peer++) {
        if (!batch_add(&batch, send, peer, data == NULL ? (void *)&lengths[peer] : data[peer],
                       data == NULL ? sizeof(uint64_t) : lengths[peer], error))
            return false;
    }
    return batch_wait(&batch, error);
}

/* Everyone's bytes to the first process, which appends them to @all in the order of ranks. */
static bool
mpi_collect(const Control *c, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    g_autofree uint64_t *lengths = g_new0(uint64_t, (gsize)c->size);
    g_autofree unsigned char **data = g_new0(unsigned char *, (gsize)c->size);
    uint64_t total = all->len;

    /* A process that is not the first one knows no length but its own: at the place of its peer. */
    lengths[0] = bytes->len;
    if (!move_bytes(c, true, lengths, NULL, error))
        return false;
    if (c->rank != 0) {
        data[0] = bytes->data;
        return move_bytes(c, true, lengths, data, error);
    }
    for (int rank = 0; rank < c->size; rank++) {
        if (lengths[rank] > limit) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "rank %d: it announces %" G_GUINT64_FORMAT " bytes, where at most "
                        "%" G_GSIZE_FORMAT " are expected",
                        rank, lengths[rank], limit);
            return false;
        }
        total += lengths[rank];
    }
    if (total > G_MAXUINT) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "MPI: the results do not fit 4 GiB in one process");
        return false;
    }
    g_byte_array_append(all, bytes->data, bytes->len);
    total = all->len;
    for (int rank = 1; rank < c->size; rank++)
        g_byte_array_set_size(all, all->len + (guint)lengths[rank]);
    for (int rank = 1; rank < c->size; rank++) {
        data[rank] = all->data + total;
        total += lengths[rank];
    }
    return move_bytes(c, true, lengths, data, error);
}

/* What the first process has in @all to everyone's. */
static bool
mpi_spread(const Control *c, GByteArray *all, GError **error)
{
    g_autofree uint64_t *lengths = g_new0(uint64_t, (gsize)c->size);
    g_autofree unsigned char **data = g_new0(unsigned char *, (gsize)c->size);

    for (int rank = 0; rank < c->size; rank++)
        lengths[rank] = all->len;
    if (!move_bytes(c, false, lengths, NULL, error))
        return false;
    if (c->rank != 0)
        g_byte_array_set_size(all, (guint)lengths[0]);
    for (int rank = 0; rank < c->size; rank++)
        data[rank] = all->data;
    return move_bytes(c, false, lengths, data, error);
}

static bool
mpi_control_share(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                  GError **error)
{
    Control *c = control;

    c->phase = "the exchange of what processes tell each other";
    return mpi_collect(c, bytes, limit, all, error) && mpi_spread(c, all, error);
}

static bool
mpi_control_barrier(void *control, GError **error)
{
    g_autoptr(GByteArray) nothing = g_byte_array_new();
    Control *c = control;

    c->phase = "the barrier";
    return mpi_collect(c, nothing, 0, nothing, error) && mpi_spread(c, nothing, error);
}

static bool
mpi_control_gather(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                   GError **error)
{
    Control *c = control;

    c->phase = "the gathering of the results";
    return mpi_collect(c, bytes, limit, all, error);
}

static void
mpi_control_close(void *control)
{
    g_free(control);
}

static void
mpi_control_abandon(int status)
{
    int initialized = 0, rank = 0;

    MPI_Initialized(&initialized);
    if (!initialized)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    g_usleep(ABORT_GRACE_US + (gulong)MIN(rank, LH_MPI_STAGGERED_RANKS) * LH_MPI_STAGGER_US);
    lh_mpi_abort(status);
}

const LhControl lh_control_mpi = {
    .name = "mpi",
    .open = mpi_control_open,
    .barrier = mpi_control_barrier,
    .gather = mpi_control_gather,
    .share = mpi_control_share,
    .close = mpi_control_close,
    .abandon = mpi_control_abandon,
};
