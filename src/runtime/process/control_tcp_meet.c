/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setup of the star. The first process listens, at a port that all know from the environment
 * (launcher_env.h) or at a free port that is announced to all, and accepts the others (listener.h),
 * which retry until it answers.
 */
#include "base/time_units.h"
#include "runtime/process/control_tcp_private.h"
#include "runtime/process/socket.h"

#include "base/error.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RETRY_US 50000
#define CONNECT_MS 1000 /* limit for one address to answer */
#define LATE_US 2000000 /* limit for others to connect and learn of an early failure */
#define TOLD_US 500000  /* less than mpirun allows all when one has ended */

/* ---- connections to the first process ---- */

static char *
judge_member(void *data, const LhHello *hello)
{
    const LhStar *w = data;

    if (hello->port != LH_PORT_START || hello->to != 0)
        return g_strdup("it connects to the wrong port or rank");
    if (hello->ranks != w->launch.size)
        return g_strdup_printf("it was started as one of %u processes, and this job has %u",
                               hello->ranks, w->launch.size);
    if (!lh_same_secret(hello->token, w->launch.token, LH_TOKEN_BYTES))
        return g_strdup("it belongs to another job: its token differs");
    if (hello->rank == 0 || hello->rank >= hello->ranks)
        return g_strdup_printf("its rank %u is out of range", hello->rank);
    if (w->members[hello->rank - 1].peer.socket >= 0)
        return g_strdup_printf("rank %u is already connected", hello->rank);
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

/* ---- the port of the first process ---- */

/* Whether the name means this host only, so that no other should be able to connect. */
static bool
is_local(const char *host)
{
    return strcmp(host, "localhost") == 0 || g_str_has_prefix(host, "127.") ||
           strcmp(host, "::1") == 0;
}

/* Resolves the addresses of the first process, or with @listen the local ones to listen at. The
 * caller frees. */
static struct addrinfo *
find_addresses(const LhLauncherEnv *launch, bool listen, GError **error)
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
                "rank %u: cannot resolve %s, the host of rank 0: %s", launch->rank, launch->host,
                gai_strerror(code));
    return NULL;
}

/* Listens at one of the addresses: IPv6 first, whose sockets accept IPv4, too. */
static bool
listen_at_one(LhListener *door, const struct addrinfo *found)
{
    for (int pass = 0; pass < 2; pass++) {
        for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
            if ((at->ai_family == AF_INET6) == (pass == 0) &&
                lh_listener_listen(door, at->ai_addr, at->ai_addrlen, true))
                return true;
        }
    }
    return false;
}

/* Listens at the chosen interfaces, and at loopback if this host's name resolves to it. */
static bool
listen_at_interfaces(const LhStar *w, const LhEndpoint *here, const struct addrinfo *named)
{
    bool listens = false;

    for (uint32_t i = 0; i < here->count; i++) {
        struct sockaddr_storage address;
        const socklen_t length = lh_address_socket(&here->addresses[i], w->launch.port, &address);

        if (lh_listener_listen(w->door, (const struct sockaddr *)&address, length, true))
            listens = true;
    }
    for (const struct addrinfo *at = named; at != NULL; at = at->ai_next) {
        if (lh_socket_is_loopback(at->ai_addr) &&
            lh_listener_listen(w->door, at->ai_addr, at->ai_addrlen, true))
            listens = true;
    }
    return listens;
}

static bool
listen_at_port(const LhStar *w, const LhEndpoint *here, GError **error)
{
    struct addrinfo *found = find_addresses(&w->launch, !here->chosen, error);
    bool listens;

    if (found == NULL)
        return false;
    errno = EADDRNOTAVAIL;
    listens = here->chosen && !is_local(w->launch.host) ? listen_at_interfaces(w, here, found)
                                                        : listen_at_one(w->door, found);
    if (!listens)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank 0 cannot listen at port %u: %s",
                    w->launch.port, g_strerror(errno));
    freeaddrinfo(found);
    return listens;
}

/* Listens at a free port, given to the others in @here. */
static bool
listen_here(const LhStar *w, LhEndpoint *here, GError **error)
{
    if (lh_listener_listen_here(w->door, here))
        return true;
    here->port = 0;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "rank 0 cannot listen for the others: %s",
                g_strerror(errno));
    return false;
}

/* ---- connecting to the first process ---- */

/* Candidate addresses of the first process, best first: of struct sockaddr_storage. NULL with
 * @error. */
static GArray *
find_first(const LhStar *w, GError **error)
{
    g_autoptr(GArray) at = g_array_new(FALSE, TRUE, sizeof(struct sockaddr_storage));
    struct addrinfo *found = find_addresses(&w->launch, false, error);

    if (found == NULL)
        return NULL;
    for (const struct addrinfo *one = found; one != NULL; one = one->ai_next) {
        struct sockaddr_storage address = { .ss_family = AF_UNSPEC };

        memcpy(&address, one->ai_addr, MIN(one->ai_addrlen, sizeof(address)));
        g_array_append_val(at, address);
    }
    freeaddrinfo(found);
    return g_steal_pointer(&at);
}

/*
 * Likewise, for a first process that was announced; also sets its host name for messages. If it has
 * no address that this process lacks, both may be on one machine under two names: then loopback is
 * tried, where a foreign process would not know the token.
 */
static GArray *
order_first(LhStar *w, const LhEndpoint *here, const LhEndpoint *first)
{
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(LhAddress));
    GArray *at = g_array_new(FALSE, TRUE, sizeof(struct sockaddr_storage));

    lh_endpoint_order(here, first, order);
    if (order->len == 0)
        g_array_append_val(order, lh_address_loopback);
    for (guint i = 0; i < order->len; i++) {
        struct sockaddr_storage address;

        (void)lh_address_socket(&g_array_index(order, LhAddress, i), first->port, &address);
        g_array_append_val(at, address);
    }
    w->launch.port = first->port;
    w->launch.host = lh_address_text(&g_array_index(order, LhAddress, 0));
    return at;
}

/* Whether a pending connect() succeeds within CONNECT_MS. */
static bool
is_through(int socket)
{
    struct pollfd one = { .fd = socket, .events = POLLOUT };
    socklen_t length = sizeof(int);
    int cause = ETIMEDOUT;

    if (poll(&one, 1, CONNECT_MS) <= 0)
        errno = ETIMEDOUT;
    else if (getsockopt(socket, SOL_SOCKET, SO_ERROR, &cause, &length) == 0 && cause == 0)
        return true;
    else
        errno = cause;
    return false;
}

/* Connects to the first address that answers; -1, with errno, if none does. */
static int
connect_to(const GArray *addresses)
{
    int cause = ECONNREFUSED;

    for (guint i = 0; i < addresses->len; i++) {
        const struct sockaddr_storage *at = &g_array_index(addresses, struct sockaddr_storage, i);
        const int one = socket(at->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (one < 0)
            continue;
        if (connect(one, (const struct sockaddr *)at, sizeof(*at)) == 0 ||
            (errno == EINPROGRESS && is_through(one)))
            return one;
        cause = errno;
        close(one);
    }
    errno = cause;
    return -1;
}

/* Connects to the first process, which may not have started yet; retries until @end_us. -1 with
 * @error. */
static int
reach_first(const LhStar *w, const GArray *addresses, int64_t end_us, GError **error)
{
    int socket, cause;

    while ((socket = connect_to(addresses)) < 0) {
        cause = errno;
        if (g_get_monotonic_time() > end_us) {
            g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME,
                        "rank %u has waited for %.3g s in the start for rank 0, which does not "
                        "listen at %s, port %u: %s; it did not start, or rank %u started too late",
                        w->launch.rank,
                        (double)(w->deadline_us + LH_STAR_PATIENCE_US) / LH_US_PER_S,
                        w->launch.host, w->launch.port, g_strerror(cause), w->launch.rank);
            return -1;
        }
        g_usleep(RETRY_US);
    }
    return socket;
}

/* Runs the handshake until @end_us. */
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
                        w->launch.rank,
                        (double)(w->deadline_us + LH_STAR_PATIENCE_US) / LH_US_PER_S,
                        w->launch.host, w->launch.port);
            return LH_HANDSHAKE_REFUSED;
        }
        (void)poll(&one, 1, LH_STAR_LOOK_MS);
    }
    if (state == LH_HANDSHAKE_REFUSED)
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u: the process at %s, port %u, rejected it: %s", w->launch.rank,
                    w->launch.host, w->launch.port, cause->message);
    return state;
}

/* Joins the first process; retries while that is busy. */
static bool
join_first(LhStar *w, const GArray *addresses, GError **error)
{
    const int64_t end_us = g_get_monotonic_time() + w->deadline_us + LH_STAR_PATIENCE_US;
    LhHello hello = { .port = LH_PORT_START, .rank = w->launch.rank, .ranks = w->launch.size };
    LhHandshakeState state = LH_HANDSHAKE_BUSY;
    LhHandshake call;

    memcpy(hello.token, w->launch.token, sizeof(hello.token));
    lh_hello_set_host(&hello);
    while (state == LH_HANDSHAKE_BUSY) {
        const int socket = reach_first(w, addresses, end_us, error);

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
    return state == LH_HANDSHAKE_IN;
}

/* ---- meeting ---- */

/* Derives token and secret from the key in the announcement, which only those that received it
 * know. A secret given by the user replaces the key. */
static void
take_key(LhStar *w, const LhEndpoint *first)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize bytes = LH_TOKEN_BYTES;

    g_checksum_update(sum, first->key, sizeof(first->key));
    g_checksum_get_digest(sum, w->launch.token, &bytes);
    if (w->secret.bytes > 0)
        return;
    memcpy(w->secret.text, first->key, sizeof(first->key));
    w->secret.bytes = sizeof(first->key);
}

/* A process has failed before all had joined: accepts late ones, so that they learn of it. */
static void
let_late_ones_in(LhStar *w, int64_t for_us)
{
    const int64_t end_us = g_get_monotonic_time() + for_us;
    uint32_t missing = 1;

    while (missing > 0 && g_get_monotonic_time() < end_us) {
        lh_star_move(w, LH_STAR_LOOK_MS);
        missing = 0;
        for (uint32_t i = 0; i < w->members_count; i++)
            missing += w->members[i].news.state == LH_RANK_MISSING;
    }
}

/* Listens and announces the port; announces also that the first process cannot listen. */
static bool
listen_and_announce(LhStar *w, LhEndpoint *here, GError **error)
{
    const bool listens = listen_here(w, here, error);

    take_key(w, here);
    w->launch.port = here->port;
    if (!w->starter->announce(here, listens ? error : NULL))
        return false;
    if (!listens)
        let_late_ones_in(w, TOLD_US); /* they learn that they need not connect */
    return listens;
}

/* Accepts the members; stops listening when all have joined. */
static bool
receive_members(LhStar *w, GError **error)
{
    const LhListenerParams params = { .answer = { &w->secret, judge_member, w },
                                      .let_in = let_member_in };
    LhEndpoint here;
    bool ok;

    if (!lh_endpoint_here(&here, error) || (w->door = lh_listener_open(&params, error)) == NULL)
        return false;
    ok = (w->starter->announce == NULL ? listen_at_port(w, &here, error)
                                       : listen_and_announce(w, &here, error)) &&
         lh_star_wait_for_all(w, error);
    if (!ok && w->trouble != NULL)
        let_late_ones_in(w, LATE_US);
    if (ok)
        lh_star_tell_hosts(w);
    else
        w->strangers = lh_listener_strangers(w->door);
    g_clear_pointer(&w->door, lh_listener_close);
    return ok;
}

/* Joins a first process that announces its address. */
static bool
join_announced(LhStar *w, GError **error)
{
    g_autoptr(GArray) addresses = NULL;
    LhEndpoint here, first = { 0 };

    if (!lh_endpoint_here(&here, error) || !w->starter->announce(&first, error))
        return false;
    if (first.port == 0) {
        g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME,
                    "rank %u: rank 0 cannot listen for the others; its own message says why",
                    w->launch.rank);
        return false;
    }
    take_key(w, &first);
    addresses = order_first(w, &here, &first);
    return join_first(w, addresses, error);
}

static bool
join_known(LhStar *w, GError **error)
{
    g_autoptr(GArray) addresses = find_first(w, error);

    return addresses != NULL && join_first(w, addresses, error);
}

static bool
meet(LhStar *w, GError **error)
{
    if (w->launch.rank != 0)
        return w->starter->announce == NULL ? join_known(w, error) : join_announced(w, error);
    return w->launch.size == 1 || receive_members(w, error);
}

bool
lh_star_meet(LhStar *w, GError **error)
{
    const bool ok = lh_secret_read(&w->secret, error) && meet(w, error);

    lh_secret_clear(&w->secret);
    return ok;
}
