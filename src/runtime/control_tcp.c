/*
 * One rank a process, started by torchrun or Slurm: a star of TCP connections. The first process
 * listens where the environment says (launch.h), and all others call it (door.h). What processes
 * tell each other goes to the first one and comes back from it, in frames (frames.h), so that it
 * knows which of them is missing. The star is made once in a process, and ends with it.
 *
 * A connection that is closed before its process has said that it ends is a process that is gone.
 * Whoever fails tells the first process, which tells all.
 */
#include "runtime/control_tcp.h"
#include "runtime/control.h"
#include "runtime/socket.h"
#include "runtime/units.h"
#include "runtime/whereabouts.h"

#include "base/error.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_US 50000
#define STEP_US_MAX 1000000 /* more than that, and this process itself was stopped */
#define PATIENCE_US 2000000 /* that others have for what the first process says at the deadline */
#define DATA_BYTES_MAX (UINT32_MAX / 2)
/* What a member may tell before it is asked for: no more bytes in a frame, and no more frames. */
#define EARLY_BYTES_MAX (64U << 10)
#define EARLY_FRAMES_MAX 16

/* The star of this process; NULL: it has not been made. */
static LhStar *own_world;

/* ---- members ---- */

/* A frame of a member that has been let in. */
static void
take_frame(LhStar *w, LhStarMember *m, const LhControlFrame *frame)
{
    m->news.heard_us = g_get_monotonic_time();
    if (frame->kind == LH_FRAME_DATA && w->ending)
        return; /* what is behind it counts */
    if (frame->kind == LH_FRAME_DATA)
        g_queue_push_tail(&m->received, g_bytes_ref(frame->content));
    else if (frame->kind == LH_FRAME_END)
        m->ended = true;
    else
        lh_star_take_news(w, m, frame);
}

/* Whether the next frame that the member sends is what is asked for. */
static bool
is_asked(const LhStar *w, const LhStarMember *m)
{
    return w->ending || (w->expected_bytes > 0 && g_queue_is_empty((GQueue *)&m->received));
}

static gsize
bytes_allowed(const LhStar *w, const LhStarMember *m)
{
    return is_asked(w, m) ? MAX(w->expected_bytes, EARLY_BYTES_MAX) : EARLY_BYTES_MAX;
}

/* Whether the first frame stays where it is, with what is behind it, until it is asked for. */
static bool
is_too_early(const LhStar *w, const LhStarMember *m)
{
    return !is_asked(w, m) && (lh_control_frame_announced(m->peer.received) > EARLY_BYTES_MAX ||
                               m->received.length >= EARLY_FRAMES_MAX);
}

static void
look_at_member(LhStar *w, LhStarMember *m)
{
    g_autoptr(GError) error = NULL;
    LhControlFrame frame;
    int taken = 0;

    if (m->peer.socket < 0)
        return;
    lh_peer_move(&m->peer, LH_FRAME_HEADER_BYTES + bytes_allowed(w, m));
    if (m->broken) /* read on, so that it can still be told */
        g_byte_array_set_size(m->peer.received, 0);
    while (!m->broken && !is_too_early(w, m) &&
           (taken = lh_control_frame_take(m->peer.received, (uint32_t)bytes_allowed(w, m), &frame,
                                          &error)) > 0) {
        take_frame(w, m, &frame);
        lh_control_frame_clear(&frame);
    }
    m->broken = m->broken || taken < 0;
    if (taken < 0)
        lh_star_note(w, m, LH_RANK_FAILED, LH_ERROR_RUNTIME, error->message);
    else if (m->peer.gone && !m->ended)
        lh_star_note(w, m, lh_peer_is_lost(&m->peer) ? LH_RANK_SILENT : LH_RANK_GONE, 0, NULL);
    if (m->peer.gone)
        lh_peer_close(&m->peer);
}

/* Returns false: the trouble that keeps this process from waiting. */
static bool
report_trouble(LhStar *w, GError **error)
{
    w->was_told = true;
    g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME, "the run has been ended: %s",
                w->verdict.text != NULL ? w->verdict.text : w->trouble);
    return false;
}

/* ---- who calls the first process ---- */

static char *
judge_member(void *data, const LhHello *hello)
{
    const LhStar *w = data;

    if (hello->port != LH_PORT_START || hello->to != 0)
        return g_strdup("what it calls for is not here");
    if (hello->ranks != w->launch.size)
        return g_strdup_printf("it was started as one of %u processes, and this job has %u",
                               hello->ranks, w->launch.size);
    if (!lh_same_secret(hello->token, w->launch.token, LH_TOKEN_BYTES))
        return g_strdup("it belongs to another job: its token differs");
    if (hello->rank == 0 || hello->rank >= hello->ranks)
        return g_strdup_printf("it says that it is rank %u", hello->rank);
    if (w->members[hello->rank - 1].peer.socket >= 0)
        return g_strdup_printf("rank %u is already there", hello->rank);
    return NULL;
}

static void
let_member_in(void *data, const LhHello *hello, int socket)
{
    LhStar *w = data;
    LhStarMember *m = &w->members[hello->rank - 1];

    lh_peer_open(&m->peer, socket);
    m->news.state = LH_RANK_ANSWERS;
    m->news.host = g_strdup(hello->host);
    m->news.heard_us = g_get_monotonic_time();
    lh_star_locate(m);
}

/* ---- waiting ---- */

static void
add_socket(GArray *polled, int socket, short events)
{
    const struct pollfd one = { .fd = socket, .events = events };

    if (socket >= 0)
        g_array_append_val(polled, one);
}

void
lh_star_move(LhStar *w, int timeout_ms)
{
    g_autoptr(GArray) polled = g_array_new(FALSE, FALSE, sizeof(struct pollfd));

    if (w->door != NULL)
        add_socket(polled, lh_door_events(w->door), POLLIN);
    for (uint32_t i = 0; i < w->members_count; i++)
        add_socket(polled, w->members[i].peer.socket, lh_peer_events(&w->members[i].peer));
    (void)poll((struct pollfd *)(void *)polled->data, polled->len, timeout_ms);
    if (w->door != NULL)
        lh_door_move(w->door);
    for (uint32_t i = 0; i < w->members_count; i++)
        look_at_member(w, &w->members[i]);
    lh_star_say_standing(w);
}

/* What is waited for of a member. */
typedef bool (*ReadyFunc)(const LhStarMember *m);

static bool
is_connected(const LhStarMember *m)
{
    return m->peer.socket >= 0;
}

static bool
has_data(const LhStarMember *m)
{
    return !g_queue_is_empty((GQueue *)&m->received);
}

static bool
has_taken(const LhStarMember *m)
{
    return m->peer.socket < 0 || lh_peer_is_idle(&m->peer);
}

/* Those that have ended will never be ready. */
static void
note_ended(LhStar *w, ReadyFunc is_ready)
{
    for (uint32_t i = 0; i < w->members_count; i++) {
        if (w->members[i].ended && !is_ready(&w->members[i]))
            lh_star_note(w, &w->members[i], LH_RANK_ENDED, 0, NULL);
    }
}

/* Names the ranks that are not ready. Returns false. */
static bool
give_up_members(const LhStar *w, ReadyFunc is_ready, const char *phase, int64_t waited_us,
                GError **error)
{
    g_autofree char *strangers = w->door == NULL ? NULL : lh_door_strangers(w->door);
    g_autoptr(GArray) missing = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree char *names = NULL;

    for (uint32_t i = 0; i < w->members_count; i++) {
        if (!is_ready(&w->members[i]))
            g_array_append_val(missing, w->members[i].rank);
    }
    names = lh_control_ranks_text(missing);
    g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME,
                "rank %u has waited for %.3g s in %s for %s%s%s", w->launch.rank,
                (double)waited_us / LH_US_PER_S, phase, names, strangers != NULL ? "; " : "",
                strangers != NULL ? strangers : "");
    return false;
}

static bool
all_ready(const LhStar *w, ReadyFunc is_ready)
{
    for (uint32_t i = 0; i < w->members_count; i++) {
        if (!is_ready(&w->members[i]))
            return false;
    }
    return true;
}

/* From now on this process waits in @phase, for the first one if it is another. */
static void
wait_at(LhStar *w, const char *phase)
{
    const uint32_t first = 0;

    g_free(w->at);
    w->at = g_strdup_printf("it waits in %s", phase);
    g_array_set_size(w->awaited, 0);
    if (w->launch.rank != 0)
        g_array_append_val(w->awaited, first);
}

/* Waits until all members are ready. @phase is what for: "the barrier". */
static bool
wait_for(LhStar *w, ReadyFunc is_ready, const char *phase, GError **error)
{
    const int64_t limit_us = w->deadline_us + (w->launch.rank == 0 ? 0 : PATIENCE_US);
    int64_t waited_us = 0, last_us = g_get_monotonic_time();

    wait_at(w, phase);
    for (;;) {
        int64_t now_us;

        lh_star_move(w, all_ready(w, is_ready) ? 0 : LH_STAR_LOOK_MS);
        if (all_ready(w, is_ready))
            return true;
        note_ended(w, is_ready);
        if (w->trouble != NULL)
            return report_trouble(w, error);
        now_us = g_get_monotonic_time();
        waited_us += MIN(now_us - last_us, STEP_US_MAX);
        last_us = now_us;
        w->waited_us = waited_us;
        if (waited_us > limit_us)
            return give_up_members(w, is_ready, phase, waited_us, error);
    }
}

/* ---- meeting ---- */

/* Whether only this computer can be meant: then nobody else should be able to connect. */
static bool
is_local(const char *host)
{
    return strcmp(host, "localhost") == 0 || g_str_has_prefix(host, "127.") ||
           strcmp(host, "::1") == 0;
}

/* The addresses of the first process; to listen, those of this computer. The caller frees. */
static struct addrinfo *
find_addresses(const LhLaunch *launch, bool listen, GError **error)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_NUMERICSERV | (listen ? AI_PASSIVE : 0) };
    const char *host = listen && !is_local(launch->host) ? NULL : launch->host;
    g_autofree char *port = g_strdup_printf("%u", launch->port);
    struct addrinfo *found = NULL;
    const int code = getaddrinfo(host, port, &hints, &found);

    if (code == 0)
        return found;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "rank %u: the first process is at %s, which is no computer that is known here: %s",
                launch->rank, launch->host, gai_strerror(code));
    return NULL;
}

/* At one of the addresses: IPv6 first, which IPv4 comes through to. */
static bool
listen_at_one(LhDoor *door, const struct addrinfo *found)
{
    for (int pass = 0; pass < 2; pass++) {
        for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
            if ((at->ai_family == AF_INET6) == (pass == 0) &&
                lh_door_listen(door, at->ai_addr, at->ai_addrlen, true))
                return true;
        }
    }
    return false;
}

/* At the interfaces that were chosen, and where those of this computer look for its name. */
static bool
listen_at_interfaces(const LhStar *w, const LhWhereabouts *here, const struct addrinfo *named)
{
    bool listens = false;

    for (uint32_t i = 0; i < here->count; i++) {
        struct sockaddr_storage address;
        const socklen_t length = lh_address_socket(&here->addresses[i], w->launch.port, &address);

        if (lh_door_listen(w->door, (const struct sockaddr *)&address, length, true))
            listens = true;
    }
    for (const struct addrinfo *at = named; at != NULL; at = at->ai_next) {
        if (lh_socket_is_loopback(at->ai_addr) &&
            lh_door_listen(w->door, at->ai_addr, at->ai_addrlen, true))
            listens = true;
    }
    return listens;
}

static bool
listen_for_members(LhStar *w, GError **error)
{
    struct addrinfo *found;
    LhWhereabouts here;
    bool listens;

    if (!lh_whereabouts_here(&here, error) ||
        (found = find_addresses(&w->launch, !here.chosen, error)) == NULL)
        return false;
    errno = EADDRNOTAVAIL;
    listens = here.chosen && !is_local(w->launch.host) ? listen_at_interfaces(w, &here, found)
                                                       : listen_at_one(w->door, found);
    if (!listens)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank 0 cannot listen at port %u: %s",
                    w->launch.port, g_strerror(errno));
    freeaddrinfo(found);
    return listens;
}

/* Whether a socket that is being connected is so; tries for a moment. */
static bool
is_through(int socket)
{
    struct pollfd one = { .fd = socket, .events = POLLOUT };
    socklen_t length = sizeof(int);
    int cause = ETIMEDOUT;

    if (poll(&one, 1, (int)(STEP_US_MAX / 1000)) <= 0)
        errno = ETIMEDOUT;
    else if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &cause, &length) == 0 && cause == 0)
        return true;
    else
        errno = cause;
    return false;
}

/* -1, with errno, if nobody listens yet. */
static int
connect_to(const struct addrinfo *found)
{
    int cause = ECONNREFUSED;

    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        const int one = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (one < 0)
            continue;
        if (connect(one, at->ai_addr, at->ai_addrlen) == 0 ||
            (errno == EINPROGRESS && is_through(one)))
            return one;
        cause = errno;
        close(one);
    }
    errno = cause;
    return -1;
}

/* Connects to the first process, which may not be there yet, until @end_us. -1 with @error. */
static int
reach_first(const LhStar *w, const struct addrinfo *found, int64_t end_us, GError **error)
{
    int socket, cause;

    while ((socket = connect_to(found)) < 0) {
        cause = errno;
        if (g_get_monotonic_time() > end_us) {
            g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME,
                        "rank %u has waited for %.3g s in the start for rank 0, which does not "
                        "listen at %s, port %u: %s; it has not come, or rank %u came too late",
                        w->launch.rank, (double)(w->deadline_us + PATIENCE_US) / LH_US_PER_S,
                        w->launch.host, w->launch.port, g_strerror(cause), w->launch.rank);
            return -1;
        }
        g_usleep(RETRY_US);
    }
    return socket;
}

/* What becomes of the call until @end_us. */
static LhHandshakeState
ask_first(const LhStar *w, LhHandshake *call, int64_t end_us, GError **error)
{
    g_autoptr(GError) cause = NULL;
    LhHandshakeState state;

    while ((state = lh_handshake_move(call, NULL, &cause)) == LH_HANDSHAKE_WAITS) {
        struct pollfd one = { .fd = call->socket, .events = POLLIN };

        if (g_get_monotonic_time() > end_us) {
            g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME,
                        "rank %u has waited for %.3g s in the start for rank 0, which does not "
                        "answer at %s, port %u",
                        w->launch.rank, (double)(w->deadline_us + PATIENCE_US) / LH_US_PER_S,
                        w->launch.host, w->launch.port);
            return LH_HANDSHAKE_REFUSED;
        }
        (void)poll(&one, 1, LH_STAR_LOOK_MS);
    }
    if (state == LH_HANDSHAKE_REFUSED)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u: what listens at %s, port %u, does not let it in: %s", w->launch.rank,
                    w->launch.host, w->launch.port, cause->message);
    return state;
}

/* Joins the first process, which may have no room at once. */
static bool
join_first(LhStar *w, GError **error)
{
    const int64_t end_us = g_get_monotonic_time() + w->deadline_us + PATIENCE_US;
    LhHello hello = { .port = LH_PORT_START, .rank = w->launch.rank, .ranks = w->launch.size };
    struct addrinfo *found = find_addresses(&w->launch, false, error);
    LhHandshakeState state = LH_HANDSHAKE_BUSY;
    LhHandshake call;

    memcpy(hello.token, w->launch.token, sizeof(hello.token));
    lh_hello_set_host(&hello);
    while (found != NULL && state == LH_HANDSHAKE_BUSY) {
        const int socket = reach_first(w, found, end_us, error);

        state = LH_HANDSHAKE_REFUSED;
        if (socket < 0)
            break;
        if (lh_handshake_call(&call, socket, &hello, &w->secret, error))
            state = ask_first(w, &call, end_us, error);
        if (state == LH_HANDSHAKE_IN) {
            lh_peer_open(&w->members[0].peer, lh_handshake_take_socket(&call));
            w->members[0].news.state = LH_RANK_ANSWERS;
            w->members[0].news.heard_us = g_get_monotonic_time();
            lh_star_locate(&w->members[0]);
        }
        lh_handshake_clear(&call);
        if (state == LH_HANDSHAKE_BUSY)
            g_usleep(RETRY_US);
    }
    if (found != NULL)
        freeaddrinfo(found);
    return state == LH_HANDSHAKE_IN;
}

/* ---- the end ---- */

static void
world_free(LhStar *w)
{
    for (uint32_t i = 0; i < w->members_count; i++) {
        lh_peer_close(&w->members[i].peer);
        g_queue_clear_full(&w->members[i].received, (GDestroyNotify)g_bytes_unref);
        lh_rank_news_clear(&w->members[i].news);
    }
    lh_door_close(w->door);
    lh_secret_clear(&w->secret);
    g_array_unref(w->awaited);
    g_array_unref(w->hosts);
    g_free(w->members);
    g_free(w->at);
    g_free(w->trouble);
    g_free(w->strangers);
    g_free(w->verdict.text);
    lh_launch_clear(&w->launch);
    g_free(w);
}

/* At the end of the process: those that still need it would be told of a failure. */
static void
leave_star(void)
{
    if (own_world == NULL)
        return;
    lh_star_tell_last(own_world, LH_FRAME_END, NULL);
    world_free(own_world);
    own_world = NULL;
}

static char *
tcp_control_conclude(const GError *failure, int *status)
{
    if (own_world != NULL)
        return lh_star_conclude(own_world, failure, status);
    *status = failure->code;
    return g_strdup(failure->message);
}

static void
tcp_control_last_words(int status, const char *text)
{
    if (own_world != NULL)
        lh_star_last_words(own_world, status, text);
}

/* ---- the interface ---- */

static LhStar *
world_new(const LhLaunch *launch)
{
    LhStar *w = g_new0(LhStar, 1);

    w->launch = *launch;
    w->host = g_get_host_name();
    w->members_count = launch->rank == 0 ? launch->size - 1 : 1;
    w->members = g_new0(LhStarMember, MAX(w->members_count, 1));
    w->awaited = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    w->hosts = g_array_new(FALSE, FALSE, sizeof(struct sockaddr_storage));
    for (uint32_t i = 0; i < w->members_count; i++) {
        w->members[i].peer.socket = -1;
        w->members[i].rank = launch->rank == 0 ? i + 1 : 0;
        w->members[i].news =
            (LhRankNews){ .state = LH_RANK_MISSING,
                          .host = launch->rank == 0 ? NULL : g_strdup(launch->host) };
        g_queue_init(&w->members[i].received);
    }
    return w;
}

/* The first process listens no longer than until all are there. */
static bool
meet_members(LhStar *w, GError **error)
{
    const LhDoorParams params = { .answer = { &w->secret, judge_member, w },
                                  .let_in = let_member_in };
    bool ok;

    if (!lh_secret_read(&w->secret, error))
        return false;
    if (w->launch.rank != 0)
        return join_first(w, error);
    if (w->launch.size == 1)
        return true;
    ok = (w->door = lh_door_open(&params, error)) != NULL && listen_for_members(w, error) &&
         wait_for(w, is_connected, "the start", error);
    if (ok)
        lh_star_tell_hosts(w);
    else if (w->door != NULL)
        w->strangers = lh_door_strangers(w->door);
    g_clear_pointer(&w->door, lh_door_close);
    return ok;
}

typedef bool (*LaunchFunc)(LhLaunch *launch, GError **error);

static bool
make_world(LaunchFunc read, uint32_t ranks, int64_t deadline_us, GError **error)
{
    LhLaunch launch;

    if (!read(&launch, error))
        return false;
    if (ranks != 0 && launch.size != ranks) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "there are %u processes for %u ranks; start as many as there are ranks",
                    launch.size, ranks);
        lh_launch_clear(&launch);
        return false;
    }
    own_world = world_new(&launch);
    own_world->deadline_us = deadline_us;
    atexit(leave_star);
    return meet_members(own_world, error);
}

static void *
open_world(LaunchFunc read, uint32_t ranks, int64_t deadline_us, LhControlPlace *place,
           GError **error)
{
    if (own_world == NULL && !make_world(read, ranks, deadline_us, error))
        return NULL;
    if (own_world->trouble != NULL) {
        report_trouble(own_world, error);
        return NULL;
    }
    if (ranks != 0 && own_world->launch.size != ranks) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "there are %u processes for %u ranks",
                    own_world->launch.size, ranks);
        return NULL;
    }
    own_world->deadline_us = deadline_us;
    *place = (LhControlPlace){ .first = own_world->launch.rank, .count = 1 };
    return own_world;
}

static void *
torchrun_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    return open_world(lh_launch_torchrun, ranks, deadline_us, place, error);
}

static void *
slurm_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    return open_world(lh_launch_slurm, ranks, deadline_us, place, error);
}

/* Sends @bytes to all members, and waits until they have left. */
static bool
send_all(LhStar *w, const GByteArray *bytes, const char *phase, GError **error)
{
    g_autoptr(GBytes) content = NULL;

    if (bytes->len > DATA_BYTES_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u has %u bytes to tell in %s; at most %u are possible", w->launch.rank,
                    bytes->len, phase, DATA_BYTES_MAX);
        return false;
    }
    content = g_bytes_new(bytes->data, bytes->len);
    for (uint32_t i = 0; i < w->members_count; i++)
        lh_peer_send(&w->members[i].peer, LH_FRAME_DATA, content);
    return wait_for(w, has_taken, phase, error);
}

/* Appends what all members have sent, in the order of ranks. */
static bool
receive_all(LhStar *w, gsize limit, GByteArray *all, const char *phase, GError **error)
{
    bool ok;

    w->expected_bytes = CLAMP(limit, 1, DATA_BYTES_MAX);
    lh_star_move(w, 0); /* what came too early, of which no socket tells any more */
    ok = wait_for(w, has_data, phase, error);
    w->expected_bytes = 0;
    for (uint32_t i = 0; ok && i < w->members_count; i++) {
        g_autoptr(GBytes) content = g_queue_pop_head(&w->members[i].received);
        gsize bytes;
        const guint8 *data = g_bytes_get_data(content, &bytes);

        if (bytes > limit) {
            g_autofree char *why =
                g_strdup_printf("it tells %" G_GSIZE_FORMAT " bytes in %s, where at most "
                                "%" G_GSIZE_FORMAT " are expected",
                                bytes, phase, limit);

            lh_star_note(w, &w->members[i], LH_RANK_FAILED, LH_ERROR_RUNTIME, why);
            return report_trouble(w, error);
        }
        if (bytes > DATA_BYTES_MAX - MIN(all->len, DATA_BYTES_MAX)) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "what all ranks tell in %s does not fit one process", phase);
            return false;
        }
        g_byte_array_append(all, data, (guint)bytes);
    }
    return ok;
}

/* What a process tells, and how much each of them may. */
typedef struct {
    const GByteArray *bytes;
    gsize limit;
} Contribution;

/* Everyone's bytes to the first process, which appends them to @all in the order of ranks. */
static bool
tcp_collect(LhStar *w, const Contribution *mine, GByteArray *all, const char *phase, GError **error)
{
    if (w->launch.rank != 0)
        return send_all(w, mine->bytes, phase, error);
    g_byte_array_append(all, mine->bytes->data, mine->bytes->len);
    return receive_all(w, mine->limit, all, phase, error);
}

/* What the first process has in @all to everyone's. */
static bool
tcp_spread(LhStar *w, gsize limit, GByteArray *all, const char *phase, GError **error)
{
    if (w->launch.rank == 0)
        return send_all(w, all, phase, error);
    return receive_all(w, MIN(limit, DATA_BYTES_MAX) * w->launch.size, all, phase, error);
}

static bool
share_in(LhStar *w, const Contribution *mine, GByteArray *all, const char *phase, GError **error)
{
    return tcp_collect(w, mine, all, phase, error) && tcp_spread(w, mine->limit, all, phase, error);
}

static bool
tcp_control_share(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                  GError **error)
{
    return share_in(control, &(Contribution){ bytes, limit }, all,
                    "the exchange of what processes tell each other", error);
}

static bool
tcp_control_barrier(void *control, GError **error)
{
    g_autoptr(GByteArray) nothing = g_byte_array_new();

    return share_in(control, &(Contribution){ nothing, 0 }, nothing, "the barrier", error);
}

static bool
tcp_control_gather(void *control, const GByteArray *bytes, gsize limit, GByteArray *all,
                   GError **error)
{
    return tcp_collect(control, &(Contribution){ bytes, limit }, all,
                       "the gathering of the results", error);
}

static bool
tcp_control_failed(void *control, GError **error)
{
    LhStar *w = control;

    lh_star_move(w, 0);
    return w->trouble != NULL && !report_trouble(w, error);
}

static void
tcp_control_standing(void *control, const char *text, const uint32_t *awaited, uint32_t count)
{
    LhStar *w = control;

    g_free(w->at);
    w->at = g_strdup(text);
    g_array_set_size(w->awaited, 0);
    g_array_append_vals(w->awaited, awaited, count);
}

/* The star stays for those that are opened later. */
static void
tcp_control_close(void *control)
{
    (void)control;
}

const LhControl lh_control_torchrun = {
    .name = "torchrun",
    .open = torchrun_open,
    .barrier = tcp_control_barrier,
    .gather = tcp_control_gather,
    .share = tcp_control_share,
    .failed = tcp_control_failed,
    .close = tcp_control_close,
    .standing = tcp_control_standing,
    .conclude = tcp_control_conclude,
    .last_words = tcp_control_last_words,
};

const LhControl lh_control_slurm = {
    .name = "slurm",
    .open = slurm_open,
    .barrier = tcp_control_barrier,
    .gather = tcp_control_gather,
    .share = tcp_control_share,
    .failed = tcp_control_failed,
    .close = tcp_control_close,
    .standing = tcp_control_standing,
    .conclude = tcp_control_conclude,
    .last_words = tcp_control_last_words,
};
