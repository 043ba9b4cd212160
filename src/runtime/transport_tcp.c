/*
 * One rank a process, messages over TCP and no library. Every channel from one rank to another is a
 * wire (wire.h), a connection of its own, so that messages on one do not wait for those on another.
 * Who sends connects, when it posts its first message; connections stay from run to run.
 *
 * At first, processes tell each other by the control plane where they listen (whereabouts.h). Who
 * connects says a greeting: the key of the run, who it is and what the wire is. Whoever says
 * something else is a stranger and is hung up on.
 *
 * The thread that opened it sleeps in epoll until a socket or a post wakes it: who waits for the
 * network leaves the cores to others.
 */
#include "runtime/socket.h"
#include "runtime/transport.h"
#include "runtime/whereabouts.h"
#include "runtime/wire.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 64
#define MAGIC_BYTES 8
#define GREETING_BYTES (MAGIC_BYTES + LH_KEY_BYTES + 3 * 4)
#define WELCOME 'W'
#define ATTEMPT_US 5000000 /* for an address to answer */
#define LINE_STRANGER_US 5000000
#define LINE_STRANGERS_MAX 1024 /* that have connected and not greeted; more are hung up on */
#define US_PER_MS 1000

/* What a greeting begins with. */
static const unsigned char greeting_magic[MAGIC_BYTES] = { 'l', 'o', 'n', 'g', 'h', 'a', 'u', 'l' };

/* What a socket that epoll reports is. */
typedef enum { LISTENER, WAKER, STRANGER, LINE } Kind;

typedef struct {
    Kind kind;
} Watched;

/* Somebody who has connected and said so much of the greeting. */
typedef struct {
    Watched watched;
    int socket;
    int64_t since_us;
    gsize got;
    unsigned char greeting[GREETING_BYTES];
} LineStranger;

/* How far the sender is with its connection. */
typedef enum { IDLE, CONNECTING, GREETING, OPEN } LineStage;

typedef struct {
    Watched watched;
    LhWire wire;
    LineStage stage;
    int64_t since_us;  /* of an attempt */
    GArray *addresses; /* of LhAddress; the sender's; NULL before the first attempt */
    guint address;     /* that is tried */
    GString *refusals; /* what came of those before */
    uint32_t events;   /* that epoll is asked for */
} Line;

typedef struct {
    uint32_t rank, ranks;
    LhWhereabouts here;
    GArray *there; /* of LhWhereabouts, by rank */
    unsigned char key[LH_KEY_BYTES];
    int epoll, listener, waker;
    Watched is_listener, is_waker;
    GHashTable *lines;    /* of Line, by name_of() */
    GPtrArray *strangers; /* of Stranger */
    GPtrArray *attempts;  /* of Line that is neither idle nor open; borrowed */
    pthread_mutex_t lock;
    LhMessage *first, *last; /* posted and not yet looked at, in order */
} Tcp;

/* That of this process; NULL: none yet. It stays, with its connections, until the process ends. */
static Tcp *shared;

/* ---- lines ---- */

static void
free_line(void *data)
{
    Line *line = data;

    lh_wire_clear(&line->wire);
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
    lh_wire_init(&line->wire, sends, t->rank, peer, channel);
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

/* Asks epoll for what the line waits for now. */
static void
watch_line(Tcp *t, Line *line)
{
    const uint32_t events = line->stage == CONNECTING ? (uint32_t)EPOLLOUT
                            : line->stage == GREETING ? (uint32_t)EPOLLIN
                                                      : lh_wire_events(&line->wire);

    if (line->wire.socket < 0 || events == line->events)
        return;
    if (!watch_socket(t, line->wire.socket, &line->watched, events))
        lh_wire_fail(&line->wire, g_strerror(errno));
    line->events = events;
}

/* ---- connecting: the sender ---- */

static void
put_u32(unsigned char *to, uint32_t value)
{
    for (unsigned i = 0; i < sizeof(value); i++)
        to[i] = (unsigned char)(value >> (LH_BYTE_BITS * i));
}

static uint32_t
get_u32(const unsigned char *from)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < sizeof(value); i++)
        value |= (uint32_t)from[i] << (LH_BYTE_BITS * i);
    return value;
}

static void
end_attempt(Tcp *t, Line *line, LineStage stage)
{
    line->stage = stage;
    g_ptr_array_remove_fast(t->attempts, line);
}

static void try_next_address(Tcp *t, Line *line);

/* This address leads nowhere: on to the next one. */
static void
give_address_up(Tcp *t, Line *line, const char *why)
{
    g_autofree char *text =
        lh_address_text(&g_array_index(line->addresses, LhAddress, line->address));

    g_string_append_printf(line->refusals, "%s%s: %s", line->refusals->len > 0 ? "; " : "", text,
                           why);
    if (line->wire.socket >= 0)
        close(line->wire.socket);
    line->wire.socket = -1;
    line->address++;
    try_next_address(t, line);
}

static void
try_address(Tcp *t, Line *line)
{
    const LhAddress *a = &g_array_index(line->addresses, LhAddress, line->address);
    const uint16_t port = g_array_index(t->there, LhWhereabouts, line->wire.peer).port;
    struct sockaddr_storage address;
    const socklen_t length = lh_address_socket(a, port, &address);

    line->since_us = g_get_monotonic_time();
    line->stage = CONNECTING;
    line->events = 0;
    line->wire.socket = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
    if (line->wire.socket >= 0) {
        lh_socket_set(line->wire.socket);
        if (connect(line->wire.socket, (const struct sockaddr *)&address, length) == 0 ||
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
    lh_wire_fail(&line->wire, line->refusals->len > 0
                                  ? line->refusals->str
                                  : "it has no address that this machine does not have, too");
}

static void
start_connecting(Tcp *t, Line *line)
{
    line->addresses = g_array_new(FALSE, FALSE, sizeof(LhAddress));
    line->refusals = g_string_new(NULL);
    lh_whereabouts_order(&t->here, &g_array_index(t->there, LhWhereabouts, line->wire.peer),
                         line->addresses);
    g_ptr_array_add(t->attempts, line);
    try_next_address(t, line);
}

/* It is connected, or has failed to be. */
static void
greet(Tcp *t, Line *line)
{
    unsigned char greeting[GREETING_BYTES];
    int cause = 0;
    socklen_t length = sizeof(cause);

    if (getsockopt(line->wire.socket, SOL_SOCKET, SO_ERROR, &cause, &length) != 0 || cause != 0) {
        give_address_up(t, line, g_strerror(cause));
        return;
    }
    memcpy(greeting, greeting_magic, MAGIC_BYTES);
    memcpy(greeting + MAGIC_BYTES, t->key, LH_KEY_BYTES);
    put_u32(greeting + MAGIC_BYTES + LH_KEY_BYTES, t->rank);
    put_u32(greeting + MAGIC_BYTES + LH_KEY_BYTES + 4, line->wire.peer);
    put_u32(greeting + MAGIC_BYTES + LH_KEY_BYTES + 8, line->wire.channel);
    if (send(line->wire.socket, greeting, sizeof(greeting), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof(greeting)) {
        give_address_up(t, line, "it does not take a greeting");
        return;
    }
    line->stage = GREETING;
    watch_line(t, line);
}

/* True: the wire is there. */
static bool
take_welcome(Tcp *t, Line *line)
{
    unsigned char answer;
    const ssize_t count = recv(line->wire.socket, &answer, 1, MSG_DONTWAIT);

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (count != 1 || answer != WELCOME) {
        give_address_up(t, line, "who listens there does not belong to this run");
        return false;
    }
    end_attempt(t, line, OPEN);
    return true;
}

/* Addresses that do not answer are given up. */
static void
look_at_attempts(Tcp *t)
{
    const int64_t now_us = t->attempts->len == 0 ? 0 : g_get_monotonic_time();

    for (guint i = t->attempts->len; i > 0; i--) {
        Line *line = g_ptr_array_index(t->attempts, i - 1);

        if (now_us - line->since_us > ATTEMPT_US)
            give_address_up(t, line, "it does not answer");
    }
}

/* ---- being connected to: the receiver ---- */

static void
free_stranger(void *data)
{
    LineStranger *s = data;

    if (s->socket >= 0)
        close(s->socket);
    g_free(s);
}

static void
accept_all(Tcp *t)
{
    int socket;

    while ((socket = accept(t->listener, NULL, NULL)) >= 0) {
        LineStranger *s;

        if (t->strangers->len == LINE_STRANGERS_MAX) {
            close(socket);
            continue;
        }
        lh_socket_set(socket);
        s = g_new0(LineStranger, 1);
        *s = (LineStranger){ { STRANGER }, .socket = socket, .since_us = g_get_monotonic_time() };
        g_ptr_array_add(t->strangers, s);
        if (!watch_socket(t, socket, &s->watched, EPOLLIN))
            g_ptr_array_remove_fast(t->strangers, s);
    }
}

/* The line that a greeting asks for; NULL: none. */
static Line *
line_of_greeting(Tcp *t, const unsigned char *greeting)
{
    const unsigned char *numbers = greeting + MAGIC_BYTES + LH_KEY_BYTES;
    const uint32_t from = get_u32(numbers), to = get_u32(numbers + 4);
    const uint32_t channel = get_u32(numbers + 8);
    Line *line;

    if (memcmp(greeting, greeting_magic, MAGIC_BYTES) != 0 ||
        !lh_same_secret(greeting + MAGIC_BYTES, t->key, LH_KEY_BYTES) || from >= t->ranks ||
        to != t->rank || channel >= LH_CHANNELS_MAX)
        return NULL;
    line = find_line(t, false, from, channel);
    return line->stage == IDLE ? line : NULL; /* it has one already */
}

/* False: the stranger is one no longer. */
static bool
hear_stranger(Tcp *t, LineStranger *s)
{
    const unsigned char welcome = WELCOME;
    const ssize_t count =
        recv(s->socket, s->greeting + s->got, sizeof(s->greeting) - s->got, MSG_DONTWAIT);
    Line *line;

    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (count <= 0)
        return false;
    s->got += (gsize)count;
    if (s->got < sizeof(s->greeting))
        return true;
    line = line_of_greeting(t, s->greeting);
    if (line == NULL || send(s->socket, &welcome, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
        return false;
    line->stage = OPEN;
    line->wire.socket = s->socket;
    s->socket = -1;
    line->events = 0;
    lh_wire_move(&line->wire);
    watch_line(t, line);
    return false;
}

/* Who does not greet is hung up on. */
static void
look_at_strangers(Tcp *t)
{
    const int64_t now_us = t->strangers->len == 0 ? 0 : g_get_monotonic_time();

    for (guint i = t->strangers->len; i > 0; i--) {
        const LineStranger *s = g_ptr_array_index(t->strangers, i - 1);

        if (now_us - s->since_us > LINE_STRANGER_US)
            g_ptr_array_remove_index_fast(t->strangers, i - 1);
    }
}

/* ---- opening ---- */

/* At all addresses, of both kinds where the machine has both; -1 with errno. */
static int
listen_anywhere(void)
{
    const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    const struct sockaddr_in v4 = { .sin_family = AF_INET };
    const int listener = lh_socket_listen((const struct sockaddr *)&v6, sizeof(v6), false);

    return listener >= 0 ? listener
                         : lh_socket_listen((const struct sockaddr *)&v4, sizeof(v4), false);
}

static bool
listen_for_lines(Tcp *t, GError **error)
{
    struct sockaddr_in6 bound = { .sin6_family = AF_UNSPEC }; /* room for both kinds */
    socklen_t length = sizeof(bound);

    t->listener = listen_anywhere();
    t->epoll = epoll_create1(EPOLL_CLOEXEC);
    t->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->listener < 0 || t->epoll < 0 || t->waker < 0 ||
        getsockname(t->listener, (struct sockaddr *)&bound, &length) != 0 ||
        !watch_socket(t, t->listener, &t->is_listener, EPOLLIN) ||
        !watch_socket(t, t->waker, &t->is_waker, EPOLLIN)) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot listen for other ranks: %s",
                    g_strerror(errno));
        return false;
    }
    /* In both kinds of addresses the port is in the same place. */
    t->here.port = ntohs(bound.sin6_port);
    return true;
}

/* Processes tell each other where they are. */
static bool
tell_whereabouts(Tcp *t, const LhOpenControl *control, GError **error)
{
    g_autoptr(GByteArray) own = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    const gsize each = lh_whereabouts_packed_bytes();

    lh_whereabouts_pack(&t->here, own);
    if (!control->table->share(control->state, own, all, error))
        return false;
    g_array_set_size(t->there, t->ranks);
    for (uint32_t r = 0; r < t->ranks; r++) {
        LhWhereabouts *there = &g_array_index(t->there, LhWhereabouts, r);

        if (all->len != each * t->ranks || !lh_whereabouts_unpack(all->data + r * each, there)) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "rank %u does not say where it can be reached", r);
            return false;
        }
    }
    memcpy(t->key, g_array_index(t->there, LhWhereabouts, 0).key, LH_KEY_BYTES);
    return true;
}

static void
free_tcp(Tcp *t)
{
    const int files[] = { t->epoll, t->listener, t->waker };

    g_hash_table_unref(t->lines);
    g_ptr_array_unref(t->strangers);
    g_ptr_array_unref(t->attempts);
    g_array_unref(t->there);
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        if (files[i] >= 0)
            close(files[i]);
    }
    pthread_mutex_destroy(&t->lock);
    g_free(t);
}

/* As many files as the system allows: every line has one. */
static void
raise_limit_of_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void *
tcp_open(const LhTransportParams *params, GError **error)
{
    Tcp *t;

    if (params->control->place.count != 1) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "backend tcp has one rank in each process, and this is one process for %u "
                    "ranks: start as many by mpirun, srun or torchrun",
                    params->ranks);
        return NULL;
    }
    if (shared != NULL)
        return shared;
    raise_limit_of_files();
    t = g_new0(Tcp, 1);
    t->rank = params->control->place.first;
    t->ranks = params->ranks;
    t->epoll = t->listener = t->waker = -1;
    t->is_listener.kind = LISTENER;
    t->is_waker.kind = WAKER;
    t->lines = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_line);
    t->strangers = g_ptr_array_new_with_free_func(free_stranger);
    t->attempts = g_ptr_array_new();
    t->there = g_array_new(FALSE, TRUE, sizeof(LhWhereabouts));
    pthread_mutex_init(&t->lock, NULL);
    if (!lh_whereabouts_here(&t->here, error) || !listen_for_lines(t, error) ||
        !tell_whereabouts(t, params->control, error)) {
        free_tcp(t);
        return NULL;
    }
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
        /* The counter is full: the thread is awake. */
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

        lh_wire_post(&line->wire, message);
        if (line->stage == IDLE && message->send)
            start_connecting(t, line);
        else if (line->stage == OPEN && line->wire.socket >= 0)
            lh_wire_move(&line->wire);
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
        moved = line->wire.socket >= 0 && lh_wire_move(&line->wire);
    watch_line(t, line);
    return moved;
}

static bool
look_at(Tcp *t, Watched *what)
{
    uint64_t posts;

    switch (what->kind) {
    case LISTENER:
        accept_all(t);
        return false;
    case WAKER:
        return read(t->waker, &posts, sizeof(posts)) > 0 && tcp_start_posted(t);
    case STRANGER:
        if (!hear_stranger(t, (LineStranger *)what))
            g_ptr_array_remove_fast(t->strangers, what);
        return false;
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
    look_at_strangers(t);
    return moved;
}

/* A run that failed leaves messages behind, and their wires in the middle of them. */
static gboolean
is_left_behind(void *name, void *value, void *data)
{
    (void)name;
    (void)data;
    return !lh_wire_is_idle(&((Line *)value)->wire);
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

const LhTransport lh_transport_tcp = {
    .name = "tcp",
    .host_memory = true,
    .open = tcp_open,
    .post = tcp_post,
    .poll = tcp_poll,
    .close = tcp_close,
};
