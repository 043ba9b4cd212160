/*
 * One rank a process, messages by MPI. All calls of MPI are made by the thread that opened it:
 * streams put messages on a list, poll() posts them, never blocking, and asks which are complete.
 * MPI is there already: the control plane has started it. It matches by (source, tag) in order of
 * posting; the tag is the channel. Data lies in host memory.
 */
#include "runtime/mpi_world.h"
#include "runtime/transport.h"

#include <mpi.h>
#include <pthread.h>
#include <string.h>

#define BLOCK_BYTES_MAX (INT32_C(1) << 30) /* counts of MPI are int */
#define IDLE_US_MAX 100                    /* between two looks */

/* A request that has ended, and how. */
typedef struct {
    guint index;
    int code;
} Ended;

typedef struct {
    pthread_mutex_t lock;
    LhMessage *first, *last; /* to be posted, in order */
    GArray *requests;        /* of MPI_Request */
    GPtrArray *messages;     /* of LhMessage *, by index of its request */
    GArray *indices;         /* of int, room for MPI_Testsome */
    GArray *statuses;        /* of MPI_Status, likewise */
    GArray *ended;           /* of Ended */
} Mpi;

static void *
mpi_open(uint32_t ranks, uint32_t channels, const LhRunDevice *device, GError **error)
{
    Mpi *m;

    (void)ranks;
    (void)channels; /* every MPI has tags for LH_CHANNELS_MAX */
    (void)device;
    (void)error;
    m = g_new0(Mpi, 1);
    pthread_mutex_init(&m->lock, NULL);
    m->requests = g_array_new(FALSE, FALSE, sizeof(MPI_Request));
    m->messages = g_ptr_array_new();
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
    pthread_mutex_unlock(&m->lock);
}

/* The pieces as one datatype of absolute addresses, into @type. */
static bool
make_type(const LhMessage *message, MPI_Datatype *type, GError **error)
{
    g_autoptr(GArray) lengths = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(MPI_Aint));

    for (uint32_t i = 0; i < message->pieces_count; i++) {
        for (uint64_t at = 0; at < message->pieces[i].bytes; at += BLOCK_BYTES_MAX) {
            const int length = (int)MIN(message->pieces[i].bytes - at, BLOCK_BYTES_MAX);
            MPI_Aint place;

            if (!lh_mpi_ok(MPI_Get_address(message->pieces[i].data + at, &place),
                           "cannot describe a message", error))
                return false;
            g_array_append_val(lengths, length);
            g_array_append_val(places, place);
        }
    }
    return lh_mpi_ok(MPI_Type_create_hindexed((int)lengths->len, (const int *)(void *)lengths->data,
                                              (const MPI_Aint *)(void *)places->data, MPI_BYTE,
                                              type),
                     "cannot describe a message", error) &&
           lh_mpi_ok(MPI_Type_commit(type), "cannot describe a message", error);
}

/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): the request is waited for elsewhere. */
static bool
start_message(Mpi *m, LhMessage *message, GError **error)
{
    MPI_Datatype type;
    MPI_Request request;
    int code;

    if (!make_type(message, &type, error))
        return false;
    if (message->send)
        code = MPI_Isend(MPI_BOTTOM, 1, type, (int)message->peer, (int)message->channel,
                         MPI_COMM_WORLD, &request);
    else
        code = MPI_Irecv(MPI_BOTTOM, 1, type, (int)message->peer, (int)message->channel,
                         MPI_COMM_WORLD, &request);
    /* The type goes when the request is done with it; finish_some() waits for that. */
    if (!lh_mpi_ok(code, message->send ? "cannot send" : "cannot receive", error) ||
        !lh_mpi_ok(MPI_Type_free(&type), "cannot describe a message", error))
        return false;
    g_array_append_val(m->requests, request);
    g_ptr_array_add(m->messages, message);
    return true;
}
/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

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
    LhMessage *message = g_ptr_array_index(m->messages, ended->index);
    GError *error = NULL;

    g_array_remove_index_fast(m->requests, ended->index);
    g_ptr_array_remove_index_fast(m->messages, ended->index);
    lh_mpi_ok(ended->code, message->send ? "cannot send" : "cannot receive", &error);
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

static bool
mpi_poll(void *state, int64_t wait_us)
{
    Mpi *m = state;
    bool started, finished;

    lh_mpi_enter("a transfer");
    started = start_posted(m);
    finished = finish_some(m);
    lh_mpi_leave();
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
