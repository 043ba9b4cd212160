/*
 * One rank a process, messages by MPI. All calls of MPI are made by the thread that opened it:
 * streams put messages on a list, poll() posts them, never blocking, and asks which are complete.
 * MPI matches by (source, tag) in order of posting; the tag is the channel. Data lies in host
 * memory.
 */
#include "runtime/mpi_world.h"
#include "runtime/transport.h"

#include <mpi.h>
#include <pthread.h>

#define BLOCK_BYTES_MAX (INT32_C(1) << 30) /* counts of MPI are int */
#define IDLE_US_MAX 100                    /* between two looks */

typedef struct {
    pthread_mutex_t lock;
    LhMessage *first, *last; /* to be posted, in order */
    GArray *requests;        /* of MPI_Request */
    GPtrArray *messages;     /* of LhMessage *, by index of its request */
    GArray *indices;         /* of int, room for MPI_Testsome */
} Mpi;

static void *
mpi_open(uint32_t ranks, uint32_t channels, const LhRunDevice *device, GError **error)
{
    Mpi *m;

    (void)ranks;
    (void)channels; /* every MPI has tags for LH_CHANNELS_MAX */
    (void)device;
    if (!lh_mpi_start(error))
        return NULL;
    m = g_new0(Mpi, 1);
    pthread_mutex_init(&m->lock, NULL);
    m->requests = g_array_new(FALSE, FALSE, sizeof(MPI_Request));
    m->messages = g_ptr_array_new();
    m->indices = g_array_new(FALSE, FALSE, sizeof(int));
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
        MPI_Isend(MPI_BOTTOM, 1, type, (int)message->peer, (int)message->channel, MPI_COMM_WORLD,
                  &request);
    else
        MPI_Irecv(MPI_BOTTOM, 1, type, (int)message->peer, (int)message->channel, MPI_COMM_WORLD,
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
        message->complete(message, NULL);
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

const LhTransport lh_transport_mpi = {
    .name = "mpi",
    .host_memory = true,
    .open = mpi_open,
    .post = mpi_post,
    .poll = mpi_poll,
    .close = mpi_close,
};
