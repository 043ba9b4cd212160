/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank a process, messages by MPI. All calls of MPI are made by the thread that opened it:
 * streams put messages on a list, poll() posts them, never blocking, and asks which are complete.
 * MPI is there already: the control plane has started it. It matches by (source, tag) in order of
 * posting; the tag is the channel. Data lies in host memory.
 */
#include "base/allocation.h"
#include "base/time_units.h"
#include "runtime/api/transport.h"
#include "runtime/process/mpi_world.h"

#include <mpi.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define BLOCK_BYTES_MAX (INT32_C(1) << 30) /* counts of MPI are int */
/* Between two looks, a sixteenth of the time since something moved: what takes long is noticed that
 * much later, and who waits for long leaves the core to others. */
#define IDLE_SHARE 16
#define IDLE_NS_MIN 2000
#define IDLE_NS_MAX 200000

/* A message under way. */
typedef struct {
    LhMessage *message;
    unsigned char
        *packed; /* what travels in place of its pieces; owned; NULL: the one that it has */
    MPI_Request request;
} Flight;

/* A request that has ended, and how. */
typedef struct {
    guint index;
    int code;
} Ended;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t posted;   /* there is something in the list */
    LhMessage *first, *last; /* to be posted, in order */
    int64_t moved_ns;        /* when something moved last */
    GArray *requests;        /* of MPI_Request */
    GArray *flights;         /* of Flight, by index of its request */
    GArray *indices;         /* of int, room for MPI_Testsome */
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

    (void)params; /* every MPI has tags for LH_CHANNELS_MAX */
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

/* Copies between the pieces of a message and one place that has all of it. */
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

/* @bytes, however many, as one element of @type. */
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
    /* The type goes when the request is done with it; finish_some() waits for that. */
    return lh_mpi_ok(code, message->send ? "cannot send" : "cannot receive", error) &&
           (type == MPI_BYTE ||
            lh_mpi_ok(MPI_Type_free(&type), "cannot describe a message", error));
}
/* Several pieces travel as one: MPI moves memory without gaps in one go, but what has some bit by
 * bit, each when both ends ask for more. */
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

/* Asks MPI which requests have ended, into m->ended. */
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
        const Ended first = { 0, code }; /* nobody knows which: the run fails with any */

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
    g_array_sort(m->ended, descending); /* so that removing one does not move the others */
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

/* Sleeps until there is something to post, or it is time to look again. */
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

/* Requests that are open belong to a run that failed: MPI may still use their memory, and the
 * process ends soon, by mpi_control_abandon. */
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

/* The first of the lines in which it says what it is; MPI need not have been started. */
static char *
mpi_library(GError **error)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;

    if (!lh_mpi_ok(MPI_Get_library_version(text, &length), "does not say its version", error))
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
