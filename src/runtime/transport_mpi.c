/*
 * One rank a process, messages by MPI. All calls of MPI are made by the thread that opened it
 * (MPI_THREAD_FUNNELED): streams put messages on a list, poll() posts them, never blocking, and
 * asks which are complete. MPI matches by (source, tag) in order of posting, as the IR does. Data
 * lies in host memory.
 */
#include "runtime/transport.h"

#include "base/error.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#define BLOCK_BYTES_MAX (INT32_C(1) << 30) /* counts of MPI are int */
#define GRACE_US 1000000
/* Open MPI 4.1's mpirun can crash when several processes abort at once. */
#define STAGGER_US 250000
#define STAGGERED_RANKS 20
#define IDLE_US_MAX 100 /* between two looks */

typedef struct {
    pthread_mutex_t lock;
    LhMessage *first, *last; /* to be posted, in order */
    GArray *requests;        /* of MPI_Request */
    GPtrArray *messages;     /* of LhMessage *, by index of its request */
    GArray *indices;         /* of int, room for MPI_Testsome */
} Mpi;

static bool
fail(GError **error, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    MPI_Error_string(code, text, &length);
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "MPI: %s: %s", what, text);
    return false;
}

/* MPI is started once and ended when the process ends. */
static void
finalize(void)
{
    int initialized = 0, finalized = 0;

    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized && !finalized)
        MPI_Finalize();
}

static bool
initialize(GError **error)
{
    int initialized = 0, provided = MPI_THREAD_SINGLE, code;

    MPI_Initialized(&initialized);
    if (initialized)
        return true;
    code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code != MPI_SUCCESS)
        return fail(error, "cannot start", code);
    atexit(finalize);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (provided >= MPI_THREAD_FUNNELED)
        return true;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "MPI: this library does not allow a process to have threads");
    return false;
}

static bool
check_tags(GError **error)
{
    int *max = NULL, found = 0;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&max, &found);
    if (found && *max >= 2 * (int)LH_TAG_COLLECTIVES - 1)
        return true;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "MPI: this library's tags are too short; 17 bits are needed");
    return false;
}

static void *
mpi_open(uint32_t ranks, uint32_t *first, uint32_t *count, GError **error)
{
    int size = 0, rank = 0;
    Mpi *m;

    if (!initialize(error) || !check_tags(error))
        return NULL;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if ((uint32_t)size != ranks) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%d processes for %u ranks; start it as: mpirun -n %u longhaul run ...", size,
                    ranks, ranks);
        return NULL;
    }
    *first = (uint32_t)rank;
    *count = 1;
    m = g_new0(Mpi, 1);
    pthread_mutex_init(&m->lock, NULL);
    m->requests = g_array_new(FALSE, FALSE, sizeof(MPI_Request));
    m->messages = g_ptr_array_new();
    m->indices = g_array_new(FALSE, FALSE, sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD);
    return m;
}

static void
mpi_post(void *state, LhMessage *message)
{
    Mpi *m = state;

    message->next = NULL;
    pthread_mutex_lock(&m->lock);
    if (m->last != NULL)
        m->last->next = message;
    else
        m->first = message;
    m->last = message;
    pthread_mutex_unlock(&m->lock);
}

/* The pieces as one datatype of absolute addresses. */
static MPI_Datatype
type_of(const LhMessage *message)
{
    g_autoptr(GArray) lengths = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(MPI_Aint));
    MPI_Datatype type;

    for (uint32_t i = 0; i < message->pieces_count; i++) {
        for (uint64_t at = 0; at < message->pieces[i].bytes; at += BLOCK_BYTES_MAX) {
            const int length = (int)MIN(message->pieces[i].bytes - at, BLOCK_BYTES_MAX);
            MPI_Aint place;

            MPI_Get_address(message->pieces[i].data + at, &place);
            g_array_append_val(lengths, length);
            g_array_append_val(places, place);
        }
    }
    MPI_Type_create_hindexed((int)lengths->len, (const int *)(void *)lengths->data,
                             (const MPI_Aint *)(void *)places->data, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void
start(Mpi *m, LhMessage *message)
{
    MPI_Datatype type = type_of(message);
    MPI_Request request;

    if (message->send)
        MPI_Isend(MPI_BOTTOM, 1, type, (int)message->peer, (int)message->tag, MPI_COMM_WORLD,
                  &request);
    else
        MPI_Irecv(MPI_BOTTOM, 1, type, (int)message->peer, (int)message->tag, MPI_COMM_WORLD,
                  &request);
    /* The type goes when the request is done with it; finish_some() waits for that. */
    MPI_Type_free(&type);
    g_array_append_val(m->requests, request);
    g_ptr_array_add(m->messages, message); /* NOLINT(clang-analyzer-optin.mpi.MPI-Checker) */
}

static bool
start_posted(Mpi *m)
{
    LhMessage *message;

    pthread_mutex_lock(&m->lock);
    message = m->first;
    m->first = NULL;
    m->last = NULL;
    pthread_mutex_unlock(&m->lock);
    if (message == NULL)
        return false;
    while (message != NULL) {
        LhMessage *next = message->next;

        start(m, message);
        message = next;
    }
    return true;
}

static int
descending(gconstpointer a, gconstpointer b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

static bool
finish_some(Mpi *m)
{
    MPI_Request *requests = (MPI_Request *)(void *)m->requests->data;
    int done = 0;

    if (m->requests->len == 0)
        return false;
    g_array_set_size(m->indices, m->requests->len);
    MPI_Testsome((int)m->requests->len, requests, &done, (int *)(void *)m->indices->data,
                 MPI_STATUSES_IGNORE);
    if (done <= 0)
        return false;
    g_array_set_size(m->indices, (guint)done);
    g_array_sort(m->indices, descending); /* so that removing one does not move the others */
    for (guint i = 0; i < m->indices->len; i++) {
        const guint index = (guint)g_array_index(m->indices, int, i);
        LhMessage *message = g_ptr_array_index(m->messages, index);

        g_array_remove_index_fast(m->requests, index);
        g_ptr_array_remove_index_fast(m->messages, index);
        message->complete(message);
    }
    return true;
}

static bool
mpi_poll(void *state, int64_t wait_us)
{
    Mpi *m = state;
    const bool started = start_posted(m);
    const bool finished = finish_some(m);

    if (started || finished)
        return true;
    g_usleep((gulong)MIN(wait_us, IDLE_US_MAX));
    return false;
}

static bool
mpi_gather(void *state, const GByteArray *bytes, GByteArray *all, GError **error)
{
    g_autofree int *lengths = NULL, *places = NULL;
    const int length = (int)bytes->len;
    int size, rank, total = 0, code;

    (void)state;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    lengths = g_new0(int, (gsize)size);
    places = g_new0(int, (gsize)size);
    code = MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; code == MPI_SUCCESS && i < size; i++) {
        places[i] = total;
        if (__builtin_add_overflow(total, lengths[i], &total)) {
            g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                                "MPI: the results do not fit 2 GiB in one process");
            return false;
        }
    }
    if (rank == 0)
        g_byte_array_set_size(all, (guint)total);
    if (code == MPI_SUCCESS)
        code = MPI_Gatherv(bytes->data, length, MPI_BYTE, all->data, lengths, places, MPI_BYTE, 0,
                           MPI_COMM_WORLD);
    return code == MPI_SUCCESS || fail(error, "cannot collect the results", code);
}

/* Requests that are open belong to a run that failed: the process ends soon, by mpi_abandon. */
static void
mpi_close(void *state)
{
    Mpi *m = state;

    pthread_mutex_destroy(&m->lock);
    g_array_unref(m->requests);
    g_ptr_array_unref(m->messages);
    g_array_unref(m->indices);
    g_free(m);
}

static void
mpi_abandon(int status)
{
    int initialized = 0, rank = 0;

    MPI_Initialized(&initialized);
    if (!initialized)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    g_usleep(GRACE_US + (gulong)MIN(rank, STAGGERED_RANKS) * STAGGER_US);
    MPI_Abort(MPI_COMM_WORLD, status);
}

const LhTransport lh_transport_mpi = {
    .name = "mpi",
    .summary = "one rank a process, by mpirun",
    .open = mpi_open,
    .post = mpi_post,
    .poll = mpi_poll,
    .gather = mpi_gather,
    .close = mpi_close,
    .abandon = mpi_abandon,
};
