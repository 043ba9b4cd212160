/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport over TCP: one rank per process, no library. Every channel from one rank to another is a
 * TCP channel (tcp_channel.h) with its own connection, so that messages on one do not wait for
 * those on another. The sender connects when it posts its first message; connections last from run
 * to run.
 *
 * First, processes exchange their endpoints (endpoint.h) over the control plane. A client sends the
 * key of the run, its identity and the channel (handshake.h). Other connections are closed
 * (listener.h).
 *
 * The thread that opened the transport sleeps in epoll until a socket or a post wakes it, which
 * leaves the cores to other threads.
 */
#include "runtime/api/transport.h"
#include "runtime/process/endpoint.h"
#include "runtime/process/listener.h"
#include "runtime/process/socket.h"
#include "runtime/process/tcp_channel.h"

#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define ATTEMPT_US 5000000 /* limit for an address to answer */
#define AGAIN_US 20000     /* until retrying a busy receiver */
#define US_PER_MS 1000

/* Kinds of descriptors that epoll watches. */
typedef enum { DOOR, WAKER, LINE } Kind;

typedef struct {
    Kind kind;
} Watched;

/* Progress of the sender's connection. */
typedef enum { IDLE, CONNECTING, GREETING, PUT_OFF, OPEN } LineStage;

typedef struct {
    Watched watched;
    LhTcpChannel wire;
    LineStage stage;
    LhHandshake call;  /* until open; sender only */
    int64_t since_us;  /* start of the attempt */
    GArray *addresses; /* of LhAddress; sender only; NULL before the first attempt */
    guint address;     /* the one being tried */
    GString *refusals; /* failures of the earlier ones */
    uint32_t events;   /* watched by epoll */
} Line;

typedef struct {
    uint32_t rank, ranks;
    LhEndpoint here;
    GArray *there; /* of LhEndpoint, by rank */
    unsigned char key[LH_KEY_BYTES];
    LhSecret secret;
    LhListener *door;
    int epoll, waker;
    Watched is_door, is_waker;
    GHashTable *lines;   /* of Line, by name_of() */
    GPtrArray *attempts; /* of Line, neither idle nor open; borrowed */
    pthread_mutex_t lock;
    LhMessage *first, *last; /* posted and not yet processed, in order */
} Tcp;

/* The transport of this process; NULL: none yet. It stays, with its connections, until the process
 * ends. */
static Tcp *shared;

/* ---- lines ---- */

static void
free_line(void *data)
{
    Line *line = data;

    lh_handshake_clear(&line->call);
    lh_tcp_channel_clear(&line->wire);
    if (line->addresses != NULL)
        g_array_unref(line->addresses);
    if (line->refusals != NULL)
        g_string_free(line->refusals, TRUE);
    g_free(line);
}

/* The key of a line in the table. Channels have 15 bits, ranks 32. */
static int64_t
name_of(bool sends, uint32_t peer, uint32_t channel)
{
    return (int64_t)((uint64_t)peer << 32 | (uint64_t)channel << 1 | (sends ? 1 : 0));
}

static Line *
find_line(Tcp *t, bool sends, uint32_t peer, uint32_t channel)
{
    const int64_t name = name_of(sends, peer, channel);
    Line *line = g_hash_table_lookup(t->lines, &name);
    int64_t *key;

    if (line != NULL)
        return line;
    line = g_new0(Line, 1);
    line->watched.kind = LINE;
    line->call.socket = -1;
    lh_tcp_channel_init(&line->wire, sends, t->rank, peer, channel);
    key = g_new(int64_t, 1);
    *key = name;
    g_hash_table_insert(t->lines, key, line);
    return line;
}

static bool
watch_socket(Tcp *t, int socket, Watched *what, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = what };

    return epoll_ctl(t->epoll, EPOLL_CTL_ADD, socket, &event) == 0 ||
           epoll_ctl(t->epoll, EPOLL_CTL_MOD, socket, &event) == 0;
}

/* Updates the events that epoll watches for the line. */
static void
watch_line(Tcp *t, Line *line)
{
    const uint32_t events = line->stage == CONNECTING ? (uint32_t)EPOLLOUT
                            : line->stage == GREETING ? (uint32_t)EPOLLIN
                                                      : lh_tcp_channel_events(&line->wire);
    const int socket = line->stage == OPEN ? line->wire.socket : line->call.socket;

    if (socket < 0 || events == line->events)
        return;
    if (!watch_socket(t, socket, &line->watched, events))
        lh_tcp_channel_fail(&line->wire, g_strerror(errno));
    line->events = events;
}

/* ---- connecting: the sender ---- */

static void
end_attempt(Tcp *t, Line *line, LineStage stage)
{
    line->stage = stage;
    g_ptr_array_remove_fast(t->attempts, line);
}

static void try_next_address(Tcp *t, Line *line);

/* Records why the current address failed and tries the next one. */
static void
give_address_up(Tcp *t, Line *line, const char *why)
{
    g_autofree char *text =
        lh_address_text(&g_array_index(line->addresses, LhAddress, line->address));

    g_string_append_printf(line->refusals, "%s%s: %s", line->refusals->len > 0 ? "; " : "", text,
                           why);
    lh_handshake_clear(&line->call);
    line->address++;
    try_next_address(t, line);
}

/* Returns -1 with errno. Frees descriptors of strangers when none are left. */
static int
new_socket(Tcp *t, int family)
{
    int one;

    do {
        one = socket(family, SOCK_STREAM, 0);
    } while (one < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS) &&
             lh_listener_make_room(t->door));
    return one;
}

static void
try_address(Tcp *t, Line *line)
{
    const LhAddress *a = &g_array_index(line->addresses, LhAddress, line->address);
    const uint16_t port = g_array_index(t->there, LhEndpoint, line->wire.peer).port;
    struct sockaddr_storage address;
    const socklen_t length = lh_address_socket(a, port, &address);

    line->since_us = g_get_monotonic_time();
    line->stage = CONNECTING;
    line->events = 0;
    line->call.socket = new_socket(t, a->v6 ? AF_INET6 : AF_INET);
    if (line->call.socket >= 0) {
        lh_socket_set(line->call.socket);
        if (connect(line->call.socket, (const struct sockaddr *)&address, length) == 0 ||
            errno == EINPROGRESS) {
            watch_line(t, line);
            return;
        }
    }
    give_address_up(t, line, g_strerror(errno));
}

static void
try_next_address(Tcp *t, Line *line)
{
    if (line->address < line->addresses->len) {
        try_address(t, line);
        return;
    }
    end_attempt(t, line, OPEN);
    lh_tcp_channel_fail(&line->wire, line->refusals->len > 0
                                         ? line->refusals->str
                                         : "it has no address other than those of this machine");
}

static void
start_connecting(Tcp *t, Line *line)
{
    line->addresses = g_array_new(FALSE, FALSE, sizeof(LhAddress));
    line->refusals = g_string_new(NULL);
    lh_endpoint_order(&t->here, &g_array_index(t->there, LhEndpoint, line->wire.peer),
                      line->addresses);
    g_ptr_array_add(t->attempts, line);
    try_next_address(t, line);
}

/* Handles the end of connect(): starts the handshake or tries the next address. */
static void
greet(Tcp *t, Line *line)
{
    LhHello hello = { .port = LH_PORT_DATA,
                      .rank = t->rank,
                      .ranks = t->ranks,
                      .to = line->wire.peer,
                      .channel = line->wire.channel };
    g_autoptr(GError) error = NULL;
    int cause = 0;
    socklen_t length = sizeof(cause);

    if (getsockopt(line->call.socket, SOL_SOCKET, SO_ERROR, &cause, &length) != 0 || cause != 0) {
        give_address_up(t, line, g_strerror(cause));
        return;
    }
    memcpy(hello.token, t->key, sizeof(hello.token));
    lh_hello_set_host(&hello);
    if (!lh_handshake_call(&line->call, line->call.socket, &hello, &t->secret, &error)) {
        give_address_up(t, line, error->message);
        return;
    }
    line->stage = GREETING;
    watch_line(t, line);
}

/* Returns true when the connection is open. */
static bool
take_welcome(Tcp *t, Line *line)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *why = NULL;

    switch (lh_handshake_move(&line->call, NULL, &error)) {
    case LH_HANDSHAKE_WAITS:
        return false;
    case LH_HANDSHAKE_IN:
        end_attempt(t, line, OPEN);
        line->wire.socket = lh_handshake_take_socket(&line->call);
        return true;
    case LH_HANDSHAKE_BUSY:
        lh_handshake_clear(&line->call);
        line->stage = PUT_OFF;
        line->since_us = g_get_monotonic_time();
        return false;
    default:
        why = g_strdup_printf("rejected: %s", error->message);
        give_address_up(t, line, why);
        return false;
    }
}

/* Gives up addresses that do not answer, and retries receivers that were busy. */
static void
look_at_attempts(Tcp *t)
{
    const int64_t now_us = t->attempts->len == 0 ? 0 : g_get_monotonic_time();

    for (guint i = t->attempts->len; i > 0; i--) {
        Line *line = g_ptr_array_index(t->attempts, i - 1);

        if (line->stage == PUT_OFF && now_us - line->since_us > AGAIN_US)
            try_address(t, line);
        else if (line->stage != PUT_OFF && now_us - line->since_us > ATTEMPT_US)
            give_address_up(t, line, "it does not answer");
    }
}

/* ---- being connected to: the receiver ---- */

static char *
judge_sender(void *data, const LhHello *hello)
{
    const Tcp *t = data;
    const int64_t name = name_of(false, hello->rank, hello->channel);
    const Line *line;

    if (hello->port != LH_PORT_DATA)
        return g_strdup("it connects to the wrong port or rank");
    if (!lh_same_secret(hello->token, t->key, LH_KEY_BYTES))
        return g_strdup("it belongs to another run: its key differs");
    if (hello->ranks != t->ranks || hello->rank >= t->ranks || hello->to != t->rank ||
        hello->channel >= LH_CHANNELS_MAX)
        return g_strdup_printf("there is no channel %u from rank %u to rank %u here",
                               hello->channel, hello->rank, hello->to);
    line = g_hash_table_lookup(t->lines, &name);
    if (line != NULL && line->stage != IDLE)
        return g_strdup_printf("channel %u from rank %u is already connected", hello->channel,
                               hello->rank);
    return NULL;
}

static void
let_sender_in(void *data, const LhHello *hello, int socket)
{
    Tcp *t = data;
    Line *line = find_line(t, false, hello->rank, hello->channel);

    lh_socket_set(socket);
    line->stage = OPEN;
    line->wire.socket = socket;
    line->events = 0;
    lh_tcp_channel_move(&line->wire);
    watch_line(t, line);
}

/* ---- opening ---- */

static bool
listen_for_lines(Tcp *t, GError **error)
{
    const LhListenerParams params = { .answer = { &t->secret, judge_sender, t },
                                      .let_in = let_sender_in };

    if ((t->door = lh_listener_open(&params, error)) == NULL)
        return false;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    t->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->epoll < 0 || t->waker < 0 || !lh_listener_listen_here(t->door, &t->here) ||
        !watch_socket(t, lh_listener_events(t->door), &t->is_door, EPOLLIN) ||
        !watch_socket(t, t->waker, &t->is_waker, EPOLLIN)) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot listen for other ranks: %s",
                    g_strerror(errno));
        return false;
    }
    return true;
}

/* All-gathers the endpoints of all processes. */
static bool
tell_whereabouts(Tcp *t, const LhOpenControl *control, GError **error)
{
    g_autoptr(GByteArray) own = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    const gsize each = lh_endpoint_packed_bytes();

    lh_endpoint_pack(&t->here, own);
    if (!control->table->share(control->state, own, each, all, error))
        return false;
    g_array_set_size(t->there, t->ranks);
    for (uint32_t r = 0; r < t->ranks; r++) {
        LhEndpoint *there = &g_array_index(t->there, LhEndpoint, r);

        if (all->len != each * t->ranks || !lh_endpoint_unpack(all->data + r * each, there)) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank %u sent no valid address", r);
            return false;
        }
    }
    memcpy(t->key, g_array_index(t->there, LhEndpoint, 0).key, LH_KEY_BYTES);
    return true;
}

static void
free_tcp(Tcp *t)
{
    const int files[] = { t->epoll, t->waker };

    g_hash_table_unref(t->lines);
    lh_listener_close(t->door);
    lh_secret_clear(&t->secret);
    g_ptr_array_unref(t->attempts);
    g_array_unref(t->there);
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        if (files[i] >= 0)
            close(files[i]);
    }
    pthread_mutex_destroy(&t->lock);
    g_free(t);
}

static void *
tcp_open(const LhTransportParams *params, GError **error)
{
    Tcp *t;

    if (params->control->place.count != 1) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "backend tcp needs one process per rank, and this is one process for %u ranks: "
                    "start one for each with mpirun, srun or torchrun",
                    params->ranks);
        return NULL;
    }
    if (shared != NULL) {
        lh_listener_catch_up(shared->door);
        return shared;
    }
    t = g_new0(Tcp, 1);
    t->rank = params->control->place.first;
    t->ranks = params->ranks;
    t->epoll = t->waker = -1;
    t->is_door.kind = DOOR;
    t->is_waker.kind = WAKER;
    t->lines = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_line);
    t->attempts = g_ptr_array_new();
    t->there = g_array_new(FALSE, TRUE, sizeof(LhEndpoint));
    pthread_mutex_init(&t->lock, NULL);
    if (!lh_secret_read(&t->secret, error) || !lh_endpoint_here(&t->here, error) ||
        !listen_for_lines(t, error) || !tell_whereabouts(t, params->control, error)) {
        free_tcp(t);
        return NULL;
    }
    lh_listener_catch_up(t->door);
    shared = t;
    return t;
}

/* ---- messages ---- */

static void
tcp_post(void *state, LhMessage *message)
{
    const uint64_t one = 1;
    Tcp *t = state;
    bool wakes;

    message->next = NULL;
    pthread_mutex_lock(&t->lock);
    wakes = t->first == NULL;
    if (t->last != NULL)
        t->last->next = message;
    else
        t->first = message;
    t->last = message;
    pthread_mutex_unlock(&t->lock);
    if (wakes && write(t->waker, &one, sizeof(one)) < 0) {
        /* The counter is full, so the thread is awake. */
    }
}

static bool
tcp_start_posted(Tcp *t)
{
    LhMessage *message;

    pthread_mutex_lock(&t->lock);
    message = t->first;
    t->first = NULL;
    t->last = NULL;
    pthread_mutex_unlock(&t->lock);
    if (message == NULL)
        return false;
    while (message != NULL) {
        LhMessage *next = message->next;
        Line *line = find_line(t, message->send, message->peer, message->channel);

        lh_tcp_channel_post(&line->wire, message);
        if (line->stage == IDLE && message->send)
            start_connecting(t, line);
        else if (line->stage == OPEN && line->wire.socket >= 0)
            lh_tcp_channel_move(&line->wire);
        watch_line(t, line);
        message = next;
    }
    return true;
}

/* Returns whether a message was completed. */
static bool
look_at_line(Tcp *t, Line *line)
{
    bool moved = false;

    if (line->stage == CONNECTING)
        greet(t, line);
    else if (line->stage == OPEN || take_welcome(t, line))
        moved = line->wire.socket >= 0 && lh_tcp_channel_move(&line->wire);
    watch_line(t, line);
    return moved;
}

static bool
look_at(Tcp *t, Watched *what)
{
    uint64_t posts;

    switch (what->kind) {
    case DOOR:
        lh_listener_move(t->door);
        return false;
    case WAKER:
        return read(t->waker, &posts, sizeof(posts)) > 0 && tcp_start_posted(t);
    default:
        return look_at_line(t, (Line *)what);
    }
}

static bool
tcp_poll(void *state, int64_t wait_us)
{
    struct epoll_event events[EVENTS];
    Tcp *t = state;
    bool moved = false;
    const int count =
        epoll_wait(t->epoll, events, EVENTS, (int)((wait_us + US_PER_MS - 1) / US_PER_MS));

    for (int i = 0; i < count; i++)
        moved = look_at(t, events[i].data.ptr) || moved;
    look_at_attempts(t);
    lh_listener_look(t->door);
    return moved;
}

/* Whether a failed run left messages on the line, whose connection is then in mid-message. */
static gboolean
is_left_behind(void *name, void *value, void *data)
{
    (void)name;
    (void)data;
    return !lh_tcp_channel_is_idle(&((Line *)value)->wire);
}

static void
tcp_close(void *state)
{
    Tcp *t = state;

    t->first = NULL;
    t->last = NULL;
    g_ptr_array_set_size(t->attempts, 0);
    (void)g_hash_table_foreach_remove(t->lines, is_left_behind, NULL);
}

static char *
tcp_strangers(void *state)
{
    const Tcp *t = state;

    return lh_listener_strangers(t->door);
}

const LhTransport lh_transport_tcp = {
    .name = "tcp",
    .host_memory = true,
    .open = tcp_open,
    .post = tcp_post,
    .poll = tcp_poll,
    .strangers = tcp_strangers,
    .close = tcp_close,
};
