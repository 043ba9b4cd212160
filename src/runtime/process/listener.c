/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/listener.h"

#include "base/error.h"
#include "runtime/process/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define EVENTS 64
#define STRANGER_US 5000000 /* for a client to identify itself */
#define BACK_OFF_US 100000  /* pause when accept() fails */
#define ACCEPTS_MAX 256     /* at a time, so that others are served, too */
#define TURNS_MAX 64        /* rounds in a row */
#define ROOM_MAX 512        /* pending connections per queue */
#define ROOM_MIN 8
#define ROOM_SHARE 8 /* at most this fraction of the process's descriptors per queue */
#define NAMED_MAX 8  /* addresses named in messages */
#define PORTS_TRIED 16

/* Clients that have identified themselves and have yet to prove it have a queue of their own, which
 * clients that send nothing cannot exhaust. */
typedef enum { SILENT, SPEAKING, DOOR_LINES } DoorLine;

typedef struct {
    LhHandshake handshake;
    struct sockaddr_storage from;
    int64_t since_us;
    DoorLine line;
    GList link;   /* in that queue */
    bool watched; /* by epoll */
} Stranger;

/* Rejected connections from one address. */
typedef struct {
    char *address;
    uint64_t count;
    char *why;      /* reason for the last; owned */
    bool presented; /* one of them identified itself */
} Origin;

struct _LhListener {
    LhListenerParams params;
    GArray *listeners; /* of int */
    int epoll;
    guint room;                /* per queue */
    GQueue lines[DOOR_LINES];  /* of Stranger, oldest first */
    int64_t starved_us;        /* when accept() last failed; 0: it works */
    int cause;                 /* errno of that; 0: never */
    GArray *origins;           /* of Origin */
    uint64_t count, elsewhere; /* rejected; of these, from addresses not in @origins */
};

/* ---- rejected connections ---- */

/* "10.0.0.2"; IPv4-mapped addresses are printed as IPv4. */
static char *
address_text(const struct sockaddr_storage *from)
{
    char text[INET6_ADDRSTRLEN] = "an unknown address";

    if (from->ss_family == AF_INET) {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)from)->sin_addr, text,
                  sizeof(text));
    } else if (from->ss_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
        const bool mapped = IN6_IS_ADDR_V4MAPPED(v6);

        inet_ntop(mapped ? AF_INET : AF_INET6, mapped ? &v6->s6_addr[12] : v6->s6_addr, text,
                  sizeof(text));
    }
    return g_strdup(text);
}

static void
clear_origin(void *data)
{
    Origin *origin = data;

    g_free(origin->address);
    g_free(origin->why);
}

/* The entry of the address. A new entry may replace one of which no client identified itself. NULL:
 * no room. */
static Origin *
find_origin(LhListener *door, const char *address, bool presented)
{
    const Origin new_one = { .address = g_strdup(address) };
    Origin *dull = NULL;

    for (guint i = 0; i < door->origins->len; i++) {
        Origin *origin = &g_array_index(door->origins, Origin, i);

        if (strcmp(origin->address, address) == 0) {
            g_free(new_one.address);
            return origin;
        }
        dull = origin->presented ? dull : origin;
    }
    if (door->origins->len < NAMED_MAX) {
        g_array_append_val(door->origins, new_one);
        return &g_array_index(door->origins, Origin, door->origins->len - 1);
    }
    if (!presented || dull == NULL) {
        g_free(new_one.address);
        return NULL;
    }
    door->elsewhere += dull->count;
    clear_origin(dull);
    *dull = new_one;
    return dull;
}

/* Counts a rejection; clients that identified themselves take precedence in the report. */
static void
note_stranger(LhListener *door, const Stranger *s, const char *why)
{
    const bool presented = s->handshake.hello.port != 0;
    g_autofree char *address = address_text(&s->from);
    Origin *origin = find_origin(door, address, presented);

    door->count++;
    if (origin == NULL) {
        door->elsewhere++;
        return;
    }
    origin->count++;
    if (origin->presented && !presented)
        return;
    origin->presented = presented;
    g_free(origin->why);
    origin->why = g_strdup(why);
}

static void
free_stranger(LhListener *door, Stranger *s)
{
    lh_handshake_clear(&s->handshake);
    g_queue_unlink(&door->lines[s->line], &s->link);
    g_free(s);
}

static void
send_away(LhListener *door, Stranger *s)
{
    note_stranger(door, s,
                  s->line == SPEAKING               ? "it does not prove who it is"
                  : s->handshake.received->len == 0 ? "it says nothing"
                                                    : "it does not say who it is");
    free_stranger(door, s);
}

char *
lh_listener_strangers(const LhListener *door)
{
    GString *text;

    if (door->count == 0 && door->cause == 0)
        return NULL;
    text = g_string_new(NULL);
    if (door->count > 0)
        g_string_append_printf(text, "%" G_GUINT64_FORMAT " connection%s rejected: ", door->count,
                               door->count == 1 ? " was" : "s were");
    for (guint i = 0; i < door->origins->len; i++) {
        const Origin *origin = &g_array_index(door->origins, Origin, i);

        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT " from %s (%s)", i > 0 ? ", " : "",
                               origin->count, origin->address, origin->why);
    }
    if (door->elsewhere > 0)
        g_string_append_printf(text, ", %" G_GUINT64_FORMAT " from other addresses",
                               door->elsewhere);
    if (door->cause != 0)
        g_string_append_printf(text, "%sfor a while no connection could be accepted: %s",
                               door->count > 0 ? "; " : "", g_strerror(door->cause));
    return g_string_free(text, FALSE);
}

/* ---- pending connections ---- */

static void
put_in_line(LhListener *door, Stranger *s, DoorLine line)
{
    s->line = line;
    g_queue_push_tail_link(&door->lines[line], &s->link);
}

/* False if the system is out of memory for it. */
static bool
watch_stranger(LhListener *door, Stranger *s)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };

    if (!s->watched)
        s->watched = epoll_ctl(door->epoll, EPOLL_CTL_ADD, s->handshake.socket, &event) == 0;
    return s->watched;
}

/* Processes the client's input. False: it has left its queue. */
static bool
hear_stranger(LhListener *door, Stranger *s)
{
    g_autoptr(GError) error = NULL;

    switch (lh_handshake_move(&s->handshake, &door->params.answer, &error)) {
    case LH_HANDSHAKE_WAITS:
        if (!s->handshake.heard || s->line == SPEAKING)
            return true;
        g_queue_unlink(&door->lines[SILENT], &s->link);
        s->since_us = g_get_monotonic_time(); /* queues are in order of time */
        put_in_line(door, s, SPEAKING);
        if (!watch_stranger(door, s))
            send_away(door, s);
        return false;
    case LH_HANDSHAKE_IN: {
        const LhHello hello = s->handshake.hello;
        const int socket = lh_handshake_take_socket(&s->handshake);

        if (s->watched)
            (void)epoll_ctl(door->epoll, EPOLL_CTL_DEL, socket, NULL);
        free_stranger(door, s);
        door->params.let_in(door->params.answer.owner, &hello, socket);
        return false;
    }
    default:
        note_stranger(door, s, error->message);
        free_stranger(door, s);
        return false;
    }
}

/* Closes the oldest of a queue, unless its input by now moves it out of the queue. */
static void
push_out(LhListener *door, DoorLine line)
{
    Stranger *oldest = g_queue_peek_head(&door->lines[line]);

    if (!hear_stranger(door, oldest))
        return;
    lh_handshake_put_off(&oldest->handshake);
    send_away(door, oldest);
}

bool
lh_listener_make_room(LhListener *door)
{
    for (DoorLine line = SILENT; line < DOOR_LINES; line++) {
        if (g_queue_is_empty(&door->lines[line]))
            continue;
        push_out(door, line);
        return true;
    }
    return false;
}

static void
keep_to_room(LhListener *door)
{
    for (DoorLine line = SILENT; line < DOOR_LINES; line++) {
        while (door->lines[line].length > door->room)
            push_out(door, line);
    }
}

static void
receive_stranger(LhListener *door, int socket, const struct sockaddr_storage *from)
{
    Stranger *s = g_new0(Stranger, 1);

    lh_handshake_answer(&s->handshake, socket);
    s->from = *from;
    s->since_us = g_get_monotonic_time();
    s->link.data = s;
    put_in_line(door, s, SILENT);
    keep_to_room(door);
}

/* Watches newly accepted connections, and reads them at once, since members send their hello as
 * soon as they are connected. */
static void
watch_received(LhListener *door)
{
    GList *link = door->lines[SILENT].tail, *next;

    while (link != NULL && link->prev != NULL && !((const Stranger *)link->prev->data)->watched)
        link = link->prev;
    for (; link != NULL; link = next) {
        Stranger *s = link->data;

        next = link->next;
        if (watch_stranger(door, s))
            (void)hear_stranger(door, s);
        else
            send_away(door, s);
    }
    keep_to_room(door);
}

/* ---- accepting ---- */

/* Listening sockets have events without a pending connection. */
static void
watch_listeners(LhListener *door, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = NULL };

    for (guint i = 0; i < door->listeners->len; i++)
        (void)epoll_ctl(door->epoll, EPOLL_CTL_MOD, g_array_index(door->listeners, int, i), &event);
}

/* Whether a connection waits to be accepted. */
static bool
somebody_waits(int listener)
{
    struct pollfd one = { .fd = listener, .events = POLLIN };

    return poll(&one, 1, 0) > 0;
}

/* Handles a failure of accept() with errno @cause: false if retrying now is useless. Without
 * descriptors accept() fails even if no connection waits. */
static bool
go_on(LhListener *door, int listener, int cause)
{
    if (cause == EAGAIN || cause == EWOULDBLOCK)
        return false;
    if (cause == EINTR || cause == ECONNABORTED)
        return true;
    if (!somebody_waits(listener))
        return false;
    if (lh_listener_make_room(door))
        return true;
    door->cause = cause;
    door->starved_us = g_get_monotonic_time();
    watch_listeners(door, 0);
    return false;
}

static void
accept_from(LhListener *door, int listener)
{
    for (guint i = 0; i < ACCEPTS_MAX; i++) {
        struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
        socklen_t length = sizeof(from);
        const int socket =
            accept4(listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (socket >= 0)
            receive_stranger(door, socket, &from);
        else if (!go_on(door, listener, errno))
            return;
    }
}

void
lh_listener_move(LhListener *door)
{
    struct epoll_event events[EVENTS] = { { 0 } };
    const int count = epoll_wait(door->epoll, events, EVENTS, 0);
    bool called = false;

    /* Handling a connection may free that one and no other. */
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            called = true;
        else
            (void)hear_stranger(door, events[i].data.ptr);
    }
    keep_to_room(door);
    for (guint i = 0; called && i < door->listeners->len; i++)
        accept_from(door, g_array_index(door->listeners, int, i));
    watch_received(door);
    lh_listener_look(door);
}

void
lh_listener_catch_up(LhListener *door)
{
    struct pollfd one = { .fd = door->epoll, .events = POLLIN };

    for (guint i = 0; i < TURNS_MAX && poll(&one, 1, 0) > 0; i++)
        lh_listener_move(door);
}

void
lh_listener_look(LhListener *door)
{
    int64_t now_us;

    if (door->starved_us == 0 && g_queue_is_empty(&door->lines[SILENT]) &&
        g_queue_is_empty(&door->lines[SPEAKING]))
        return;
    now_us = g_get_monotonic_time();
    for (DoorLine line = SILENT; line < DOOR_LINES; line++) {
        Stranger *oldest;

        while ((oldest = g_queue_peek_head(&door->lines[line])) != NULL &&
               now_us - oldest->since_us > STRANGER_US)
            send_away(door, oldest);
    }
    if (door->starved_us != 0 && now_us - door->starved_us > BACK_OFF_US) {
        door->starved_us = 0;
        watch_listeners(door, EPOLLIN);
    }
}

/* ---- the port ---- */

static guint
room_of_line(void)
{
    struct rlimit limit = { .rlim_cur = RLIM_INFINITY };

    lh_socket_raise_limit();
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return (guint)CLAMP(limit.rlim_cur / ROOM_SHARE, ROOM_MIN, ROOM_MAX);
}

LhListener *
lh_listener_open(const LhListenerParams *params, GError **error)
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    LhListener *door;

    if (epoll < 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "cannot wait for connections: %s",
                    g_strerror(errno));
        return NULL;
    }
    door = g_new0(LhListener, 1);
    door->params = *params;
    door->epoll = epoll;
    door->room = room_of_line();
    door->listeners = g_array_new(FALSE, FALSE, sizeof(int));
    door->origins = g_array_new(FALSE, FALSE, sizeof(Origin));
    g_array_set_clear_func(door->origins, clear_origin);
    for (DoorLine line = SILENT; line < DOOR_LINES; line++)
        g_queue_init(&door->lines[line]);
    return door;
}

bool
lh_listener_listen(LhListener *door, const struct sockaddr *address, socklen_t length, bool reused)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    const int listener = lh_socket_listen(address, length, reused);
    int cause;

    if (listener < 0)
        return false;
    if (epoll_ctl(door->epoll, EPOLL_CTL_ADD, listener, &event) == 0) {
        g_array_append_val(door->listeners, listener);
        return true;
    }
    cause = errno;
    close(listener);
    errno = cause;
    return false;
}

uint16_t
lh_listener_port(const LhListener *door)
{
    struct sockaddr_in6 bound = { .sin6_family = AF_UNSPEC }; /* large enough for IPv4 and IPv6 */
    socklen_t length = sizeof(bound);

    if (door->listeners->len == 0 || getsockname(g_array_index(door->listeners, int, 0),
                                                 (struct sockaddr *)&bound, &length) != 0)
        return 0;
    return ntohs(bound.sin6_port); /* at the same offset in both */
}

static void
forget_addresses(LhListener *door)
{
    for (guint i = 0; i < door->listeners->len; i++)
        close(g_array_index(door->listeners, int, i));
    g_array_set_size(door->listeners, 0);
}

static bool
listen_at(LhListener *door, const LhAddress *a, uint16_t port)
{
    struct sockaddr_storage address;
    const socklen_t length = lh_address_socket(a, port, &address);

    return lh_listener_listen(door, (const struct sockaddr *)&address, length, false);
}

static bool
listen_anywhere(LhListener *door)
{
    const LhAddress v6 = { .v6 = true }, v4 = { .v6 = false };

    return listen_at(door, &v6, 0) || listen_at(door, &v4, 0);
}

/* The same port must be free at each of them. */
static bool
listen_at_chosen(LhListener *door, const LhEndpoint *here)
{
    for (unsigned i = 0; i < PORTS_TRIED; i++) {
        uint32_t listens = 0;

        forget_addresses(door);
        if (!listen_at(door, &lh_address_loopback, 0))
            return false;
        while (listens < here->count &&
               listen_at(door, &here->addresses[listens], lh_listener_port(door)))
            listens++;
        if (listens == here->count || errno != EADDRINUSE)
            return listens == here->count;
    }
    return false;
}

bool
lh_listener_listen_here(LhListener *door, LhEndpoint *here)
{
    if (!(here->chosen ? listen_at_chosen(door, here) : listen_anywhere(door)))
        return false;
    here->port = lh_listener_port(door);
    return true;
}

int
lh_listener_events(const LhListener *door)
{
    return door->epoll;
}

void
lh_listener_close(LhListener *door)
{
    if (door == NULL)
        return;
    for (DoorLine line = SILENT; line < DOOR_LINES; line++) {
        while (!g_queue_is_empty(&door->lines[line]))
            free_stranger(door, g_queue_peek_head(&door->lines[line]));
    }
    forget_addresses(door);
    g_array_unref(door->listeners);
    g_array_unref(door->origins);
    close(door->epoll);
    g_free(door);
}
