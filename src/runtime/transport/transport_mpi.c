/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport over MPI: one rank per process. The thread that opened it makes all MPI calls: streams
 * append messages to a list; poll() posts them with non-blocking calls and tests for completion.
 * The control plane has already initialised MPI. MPI matches by (source, tag) in posting order; the
 * tag is the channel. Data is in host memory.
 */
#include "base/allocation.h"
#include "base/time_units.h"
#include "runtime/api/transport.h"
#include "runtime/process/mpi_world.h"

#include <mpi.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define BLOCK_BYTES_MAX (INT32_C(1) << 30) /* MPI counts are int */
/* Polling interval: a sixteenth of the time since something last moved. Long transfers are noticed
 * that much later, and long waits leave the core to others. */
#define IDLE_SHARE 16
#define IDLE_NS_MIN 2000
#define IDLE_NS_MAX 200000

/* A message in transit. */
typedef struct {
    LhMessage *message;
    unsigned char
        *packed; /* contiguous copy that is transferred instead of the pieces; owned; NULL: none */
    MPI_Request request;
} Flight;

/* A completed request and its error code. */
typedef struct {
    guint index;
    int code;
} Ended;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t posted;   /* the list is not empty */
    LhMessage *first, *last; /* to be posted, in order */
    int64_t moved_ns;        /* when something moved last */
    GArray *requests;        /* of MPI_Request */
    GArray *flights;         /* of Flight, by index of its request */
    GArray *indices;         /* of int, for MPI_Testsome */
    GArray *statuses;        /* of MPI_Status, likewise */
    GArray *ended;           /* of Ended */
} Mpi;

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * LH_NS_PER_S + t.tv_nsec;
}

static void *
mpi_open(const LhTransportParams *params, GError **error)
{
    pthread_condattr_t monotonic;
    Mpi *m;

    (void)params; /* every MPI has enough tags for LH_CHANNELS_MAX */
    (void)error;
    m = g_new0(Mpi, 1);
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->posted, &monotonic);
    pthread_condattr_destroy(&monotonic);
    m->moved_ns = now_ns();
    m->requests = g_array_new(FALSE, FALSE, sizeof(MPI_Request));
    m->flights = g_array_new(FALSE, FALSE, sizeof(Flight));
    m->indices = g_array_new(FALSE, FALSE, sizeof(int));
    m->statuses = g_array_new(FALSE, FALSE, sizeof(MPI_Status));
    m->ended = g_array_new(FALSE, FALSE, sizeof(Ended));
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
    pthread_cond_signal(&m->posted);
    pthread_mutex_unlock(&m->lock);
}

/* Copies between the pieces of a message and a contiguous buffer. */
static void
copy_whole(const LhMessage *message, unsigned char *whole, bool in)
{
    for (uint32_t i = 0; i < message->pieces_count; i++) {
        const LhPiece *piece = &message->pieces[i];

        if (in)
            memcpy(whole, piece->data, piece->bytes);
        else
            memcpy(piece->data, whole, piece->bytes);
        whole += piece->bytes;
    }
}

/* Builds a datatype of @bytes bytes, which may exceed INT_MAX. */
static bool
make_type(uint64_t bytes, MPI_Datatype *type, GError **error)
{
    g_autoptr(GArray) lengths = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(MPI_Aint));

    for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES_MAX) {
        const int length = (int)MIN(bytes - at, BLOCK_BYTES_MAX);
        const MPI_Aint place = (MPI_Aint)at;

        g_array_append_val(lengths, length);
        g_array_append_val(places, place);
    }
    return lh_mpi_ok(MPI_Type_create_hindexed((int)lengths->len, (const int *)(void *)lengths->data,
                                              (const MPI_Aint *)(void *)places->data, MPI_BYTE,
                                              type),
                     "cannot describe a message", error) &&
           lh_mpi_ok(MPI_Type_commit(type), "cannot describe a message", error);
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): the request is waited for elsewhere. */
static bool
start_request(Flight *flight, unsigned char *data, GError **error)
{
    const LhMessage *message = flight->message;
    MPI_Datatype type = MPI_BYTE;
    int count = (int)message->bytes, code;

    if (message->bytes > BLOCK_BYTES_MAX) {
        count = 1;
        if (!make_type(message->bytes, &type, error))
            return false;
    }
    if (message->send)
        code = MPI_Isend(data, count, type, (int)message->peer, (int)message->channel,
                         MPI_COMM_WORLD, &flight->request);
    else
        code = MPI_Irecv(data, count, type, (int)message->peer, (int)message->channel,
                         MPI_COMM_WORLD, &flight->request);
    /* MPI frees the type when the request completes, which finish_some() waits for. */
    return lh_mpi_ok(code, message->send ? "cannot send" : "cannot receive", error) &&
           (type == MPI_BYTE ||
            lh_mpi_ok(MPI_Type_free(&type), "cannot describe a message", error));
}
/* Several pieces are packed into one buffer: MPI moves contiguous memory at once, but other memory
 * piecewise, and only while both ends call it. */
static bool
start_message(Mpi *m, LhMessage *message, GError **error)
{
    g_autofree unsigned char *packed = NULL;
    Flight flight = { .message = message };

    if (message->pieces_count != 1) {
        packed = lh_memory_try(message->bytes, "a message", error);
        if (packed == NULL)
            return false;
        if (message->send)
            copy_whole(message, packed, true);
    }
    if (!start_request(&flight, packed != NULL ? packed : message->pieces[0].data, error))
        return false;
    g_array_append_val(m->requests, flight.request);
    flight.packed = g_steal_pointer(&packed);
    g_array_append_val(m->flights, flight);
    return true;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

static bool
mpi_start_posted(Mpi *m)
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
        GError *error = NULL;

        if (!start_message(m, message, &error))
            message->complete(message, error);
        message = next;
    }
    return true;
}

static int
descending(gconstpointer a, gconstpointer b)
{
    const guint x = ((const Ended *)a)->index, y = ((const Ended *)b)->index;

    return x < y ? 1 : x > y ? -1 : 0;
}

static void
finish_message(Mpi *m, const Ended *ended)
{
    const Flight flight = g_array_index(m->flights, Flight, ended->index);
    LhMessage *message = flight.message;
    GError *error = NULL;

    g_array_remove_index_fast(m->requests, ended->index);
    g_array_remove_index_fast(m->flights, ended->index);
    if (lh_mpi_ok(ended->code, message->send ? "cannot send" : "cannot receive", &error) &&
        flight.packed != NULL && !message->send)
        copy_whole(message, flight.packed, false);
    g_free(flight.packed);
    message->complete(message, error);
}

/* Tests which requests have completed, into m->ended. */
static void
find_ended(Mpi *m)
{
    MPI_Request *requests = (MPI_Request *)(void *)m->requests->data;
    int done = 0, code;

    g_array_set_size(m->ended, 0);
    g_array_set_size(m->indices, m->requests->len);
    g_array_set_size(m->statuses, m->requests->len);
    code = MPI_Testsome((int)m->requests->len, requests, &done, (int *)(void *)m->indices->data,
                        (MPI_Status *)(void *)m->statuses->data);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
        const Ended first = { 0, code }; /* unknown which; any makes the run fail */

        g_array_append_val(m->ended, first);
        return;
    }
    for (int i = 0; i < done; i++) {
        const Ended ended = { (guint)g_array_index(m->indices, int, i),
                              code == MPI_SUCCESS
                                  ? MPI_SUCCESS
                                  : g_array_index(m->statuses, MPI_Status, i).MPI_ERROR };

        g_array_append_val(m->ended, ended);
    }
    g_array_sort(m->ended, descending); /* removing one must not move the others */
}

static bool
finish_some(Mpi *m)
{
    if (m->requests->len == 0)
        return false;
    find_ended(m);
    for (guint i = 0; i < m->ended->len; i++)
        finish_message(m, &g_array_index(m->ended, Ended, i));
    return m->ended->len > 0;
}

/* Sleeps until a message is posted or the next poll is due. */
static void
wait_for_posts(Mpi *m, int64_t wait_us)
{
    const int64_t now = now_ns();
    const int64_t idle = CLAMP((now - m->moved_ns) / IDLE_SHARE, IDLE_NS_MIN, IDLE_NS_MAX);
    const int64_t until = now + MIN(idle, wait_us * LH_NS_PER_US);
    const struct timespec limit = { until / LH_NS_PER_S, until % LH_NS_PER_S };

    pthread_mutex_lock(&m->lock);
    if (m->first == NULL)
        pthread_cond_timedwait(&m->posted, &m->lock, &limit);
    pthread_mutex_unlock(&m->lock);
}

static bool
mpi_poll(void *state, int64_t wait_us)
{
    Mpi *m = state;
    bool started, finished;

    lh_mpi_enter("a transfer");
    started = mpi_start_posted(m);
    finished = finish_some(m);
    lh_mpi_leave();
    if (started || finished) {
        m->moved_ns = now_ns();
        return true;
    }
    wait_for_posts(m, wait_us);
    return false;
}

/* Open requests belong to a failed run: MPI may still use their memory, and mpi_control_abandon()
 * ends the process soon. */
static void
mpi_close(void *state)
{
    Mpi *m = state;

    pthread_cond_destroy(&m->posted);
    pthread_mutex_destroy(&m->lock);
    g_array_unref(m->requests);
    g_array_unref(m->flights);
    g_array_unref(m->indices);
    g_array_unref(m->statuses);
    g_array_unref(m->ended);
    g_free(m);
}

/* The first line of the library's version text; MPI need not be initialised. */
static char *
mpi_library(GError **error)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;

    if (!lh_mpi_ok(MPI_Get_library_version(text, &length), "does not report its version", error))
        return NULL;
    text[strcspn(text, ",\n")] = '\0';
    return g_strdup(text);
}

const LhTransport lh_transport_mpi = {
    .name = "mpi",
    .host_memory = true,
    .describe = mpi_library,
    .open = mpi_open,
    .post = mpi_post,
    .poll = mpi_poll,
    .close = mpi_close,
};
