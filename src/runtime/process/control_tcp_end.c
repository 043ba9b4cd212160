/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Termination of the star after a failure: what processes report to the first one, what it asks,
 * its verdict (first_failure.h), and what the others conclude without it.
 *
 * A process that fails reports why. A process that timed out reports for whom it waited; then all
 * others are asked for their progress, since the rank that all wait for may never report again. The
 * first process decides, and all end with its verdict. If the first process does not answer, each
 * other process probes the remaining hosts: if it reaches any, the first process is at fault,
 * otherwise this process is cut off.
 */
#include "base/time_units.h"
#include "runtime/process/control_tcp_private.h"
#include "runtime/process/endpoint.h"
#include "runtime/process/reachability.h"
#include "runtime/process/socket.h"

#include "base/error.h"

#include <string.h>
#include <sys/socket.h>

#define SAY_US 1000000               /* between two progress reports */
#define ANSWER_US 1500000            /* limit for a process to answer */
#define REACH_US 1500000             /* limit for a host to answer */
#define VERDICT_US 5000000           /* limit for the first process's verdict: both, and more */
#define FAREWELL_US 1000000          /* limit for a last frame to leave */
#define ENDING_BYTES_MAX (64U << 20) /* of dropped data ahead of the frames that matter */

/* ---- hosts ---- */

/* The local address of a connection. */
static bool
find_own_host(const LhPeer *peer, LhAddress *address)
{
    struct sockaddr_storage here = { .ss_family = AF_UNSPEC };
    socklen_t length = sizeof(here);

    return peer->socket >= 0 && getsockname(peer->socket, (struct sockaddr *)&here, &length) == 0 &&
           lh_address_of(&here, address);
}

void
lh_star_locate(LhStarMember *m)
{
    struct sockaddr_storage there = { .ss_family = AF_UNSPEC };
    socklen_t length = sizeof(there);
    LhAddress own;

    m->elsewhere = find_own_host(&m->peer, &own) &&
                   getpeername(m->peer.socket, (struct sockaddr *)&there, &length) == 0 &&
                   lh_address_of(&there, &m->address) &&
                   memcmp(m->address.bytes, own.bytes, sizeof(own.bytes)) != 0;
}

#define HOST_BYTES (1 + sizeof(((LhAddress *)NULL)->bytes))

static void
take_hosts(LhStar *w, GBytes *content)
{
    LhAddress own = { .v6 = false };
    gsize bytes;
    const unsigned char *data = g_bytes_get_data(content, &bytes);

    if (bytes < LH_HELLO_HOST_BYTES || memchr(data, '\0', LH_HELLO_HOST_BYTES) == NULL)
        return;
    g_free(w->members[0].news.host);
    w->members[0].news.host = g_utf8_make_valid((const char *)data, -1);
    (void)find_own_host(&w->members[0].peer, &own);
    for (gsize at = LH_HELLO_HOST_BYTES;
         at + HOST_BYTES <= bytes && w->hosts->len < LH_STAR_HOSTS_MAX; at += HOST_BYTES) {
        LhAddress host = { .v6 = data[at] != 0 };
        struct sockaddr_storage address;

        memcpy(host.bytes, data + at + 1, sizeof(host.bytes));
        (void)lh_address_socket(&host, w->launch.port, &address);
        if (memcmp(host.bytes, own.bytes, sizeof(own.bytes)) != 0)
            g_array_append_val(w->hosts, address);
    }
}

/* ---- reports of members ---- */

static void note_trouble(LhStar *w, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Records the first trouble only. */
static void
note_trouble(LhStar *w, const char *format, ...)
{
    va_list args;

    if (w->trouble != NULL)
        return;
    va_start(args, format);
    w->trouble = g_strdup_vprintf(format, args);
    va_end(args);
}

void
lh_star_note(LhStar *w, LhStarMember *m, LhRankState state, int status, const char *why)
{
    static const char *const words[] = { [LH_RANK_GONE] = "its process is gone",
                                         [LH_RANK_ENDED] = "it has ended",
                                         [LH_RANK_SILENT] = "it does not answer" };
    const bool known = m->news.state != LH_RANK_ANSWERS && m->news.state != LH_RANK_SILENT;

    m->asked = false;
    if (known)
        return;
    m->news.state = state;
    m->news.status = status;
    m->news.order = w->failures++;
    if (why != NULL) {
        g_free(m->news.text);
        m->news.text = g_strdup(why);
    }
    note_trouble(w, "rank %u: %s", m->rank, why != NULL ? why : words[state]);
}

static void
take_standing(LhStar *w, LhStarMember *m, GBytes *content)
{
    LhStanding standing;

    if (!lh_standing_unpack(content, &standing)) {
        lh_star_note(w, m, LH_RANK_FAILED, LH_ERROR_RUNTIME, "it sent an unexpected frame");
        return;
    }
    m->asked = false;
    if (m->news.state == LH_RANK_ANSWERS) {
        g_free(m->news.text);
        m->news.text = g_steal_pointer(&standing.text);
        if (m->news.awaited != NULL)
            g_array_unref(m->news.awaited);
        m->news.awaited = g_array_ref(standing.awaited);
    }
    if (standing.gave_up)
        note_trouble(w, "rank %u timed out waiting for others", m->rank);
    lh_standing_clear(&standing);
}

/* Takes a verdict: of the first process, or, at the first process, of another that says that the
 * first does not answer. */
static void
take_verdict(LhStar *w, LhStarMember *m, GBytes *content)
{
    uint32_t rank = 0;
    int status = 0;
    char *text = lh_failure_unpack(content, &rank, &status);

    if (text == NULL || status == 0 || (w->launch.rank == 0 && rank != 0)) {
        g_free(text);
        lh_star_note(w, m, LH_RANK_FAILED, LH_ERROR_RUNTIME, "it sent an unexpected frame");
        return;
    }
    note_trouble(w, "%s", text);
    if (w->verdict.text == NULL)
        w->verdict = (LhFirstFailure){ .rank = rank, .status = status, .text = text };
    else
        g_free(text);
}

static void
take_failure(LhStar *w, LhStarMember *m, GBytes *content)
{
    uint32_t rank = 0;
    int status = 0;
    g_autofree char *text = lh_failure_unpack(content, &rank, &status);

    lh_star_note(w, m, LH_RANK_FAILED, status != 0 ? status : LH_ERROR_RUNTIME,
                 text != NULL ? text : "it sent an unexpected frame");
}

static void
tell_standing(LhStar *w, bool gave_up)
{
    const LhStanding standing = { gave_up, w->awaited,
                                  w->at != NULL ? w->at : (char *)"it has just joined" };
    g_autoptr(GBytes) content = lh_standing_pack(&standing);

    w->said_us = g_get_monotonic_time();
    lh_peer_send(&w->members[0].peer, LH_FRAME_STANDING, content);
}

void
lh_star_say_standing(LhStar *w)
{
    if (w->launch.rank != 0 && w->members[0].peer.socket >= 0 && w->at != NULL &&
        g_get_monotonic_time() - w->said_us > SAY_US)
        tell_standing(w, false);
}

void
lh_star_take_news(LhStar *w, LhStarMember *m, const LhControlFrame *frame)
{
    const bool from_first = w->launch.rank != 0;

    if (frame->kind == LH_FRAME_STANDING && !from_first)
        take_standing(w, m, frame->content);
    else if (frame->kind == LH_FRAME_FAILURE && !from_first)
        take_failure(w, m, frame->content);
    else if (frame->kind == LH_FRAME_ASK && from_first)
        tell_standing(w, false);
    else if (frame->kind == LH_FRAME_VERDICT)
        take_verdict(w, m, frame->content);
    else if (frame->kind == LH_FRAME_HOSTS && from_first)
        take_hosts(w, frame->content);
    else
        lh_star_note(w, m, LH_RANK_FAILED, LH_ERROR_RUNTIME, "it sent an unexpected frame");
}

void
lh_star_tell_hosts(LhStar *w)
{
    g_autoptr(GByteArray) packed = g_byte_array_new();
    g_autoptr(GBytes) content = NULL;
    LhHello own = { .rank = 0 };
    uint32_t count = 0;

    lh_hello_set_host(&own);
    g_byte_array_append(packed, (const guint8 *)own.host, LH_HELLO_HOST_BYTES);
    for (uint32_t i = 0; i < w->members_count && count < LH_STAR_HOSTS_MAX; i++) {
        const LhAddress *address = &w->members[i].address;
        unsigned char host[HOST_BYTES];
        bool known = false;

        if (!w->members[i].elsewhere)
            continue;
        host[0] = address->v6;
        memcpy(host + 1, address->bytes, sizeof(address->bytes));
        for (uint32_t at = 0; at < count; at++)
            known = known || memcmp(packed->data + LH_HELLO_HOST_BYTES + at * HOST_BYTES, host,
                                    HOST_BYTES) == 0;
        if (known)
            continue;
        g_byte_array_append(packed, host, sizeof(host));
        count++;
    }
    content = g_byte_array_free_to_bytes(g_steal_pointer(&packed));
    for (uint32_t i = 0; i < w->members_count; i++)
        lh_peer_send(&w->members[i].peer, LH_FRAME_HOSTS, content);
}

/* ---- the verdict of the first process ---- */

static bool
is_silent(const LhStarMember *m)
{
    return m->news.state == LH_RANK_SILENT;
}

/* Asks all members for their progress; those that do not answer are silent. Returns at once if one
 * has failed or disconnected: its launcher may end this process next. */
static void
ask_all(LhStar *w)
{
    const int64_t end_us = g_get_monotonic_time() + ANSWER_US;
    bool waits = true;

    for (uint32_t i = 0; i < w->members_count; i++) {
        LhStarMember *m = &w->members[i];

        m->asked = m->news.state == LH_RANK_ANSWERS && m->peer.socket >= 0;
        if (m->asked)
            lh_peer_send(&m->peer, LH_FRAME_ASK, NULL);
    }
    while (waits && g_get_monotonic_time() < end_us) {
        lh_star_move(w, LH_STAR_LOOK_MS);
        waits = false;
        for (uint32_t i = 0; i < w->members_count; i++) {
            waits = waits || w->members[i].asked;
            if (w->members[i].news.state == LH_RANK_FAILED ||
                w->members[i].news.state == LH_RANK_GONE)
                return;
        }
    }
    for (uint32_t i = 0; i < w->members_count; i++) {
        if (w->members[i].asked)
            lh_star_note(w, &w->members[i], LH_RANK_SILENT, 0, NULL);
    }
}

/* Probes the hosts of silent members. */
static void
reach_silent(LhStar *w)
{
    g_autofree struct sockaddr_storage *addresses =
        g_new0(struct sockaddr_storage, MAX(w->members_count, 1));
    g_autofree LhStarMember **of = g_new0(LhStarMember *, MAX(w->members_count, 1));
    g_autofree bool *reached = g_new0(bool, MAX(w->members_count, 1));
    uint32_t count = 0;

    for (uint32_t i = 0; i < w->members_count; i++) {
        LhStarMember *m = &w->members[i];

        if (!is_silent(m))
            continue;
        m->news.host_answers = !m->elsewhere;
        if (m->news.host_answers)
            continue;
        (void)lh_address_socket(&m->address, w->launch.port, &addresses[count]);
        of[count++] = m;
    }
    lh_hosts_reachable(addresses, count, REACH_US, reached);
    for (uint32_t i = 0; i < count; i++)
        of[i]->news.host_answers = reached[i];
}

/* The state of this process. */
static LhRankNews
own_news(const LhStar *w, const GError *failure)
{
    const bool failed = failure->domain != LH_WAITED;

    return (LhRankNews){ .state = failed ? LH_RANK_FAILED : LH_RANK_ANSWERS,
                         .order = failed && !w->was_told ? 0 : w->failures,
                         .status = failure->code,
                         .host = (char *)w->host,
                         .text = failed ? failure->message : w->at,
                         .heard_us = g_get_monotonic_time(),
                         .awaited = w->awaited };
}

static bool
has_failed(const LhStar *w)
{
    for (uint32_t i = 0; i < w->members_count; i++) {
        if (w->members[i].news.state == LH_RANK_FAILED)
            return true;
    }
    return false;
}

/* Asks the others for their progress unless one has failed. If this process was suspended, they may
 * have decided without it, and their verdict has arrived. */
static void
hear_all(LhStar *w, const GError *failure)
{
    lh_star_move(w, 0);
    if (w->verdict.text != NULL || failure->domain != LH_WAITED || has_failed(w))
        return;
    ask_all(w);
    reach_silent(w);
}

static LhFirstFailure
judge_all(const LhStar *w, const GError *failure)
{
    const LhRankNews own = own_news(w, failure);
    g_autofree LhRankNews *news = g_new0(LhRankNews, w->launch.size);
    LhFirstFailure culprit;

    news[0] = own;
    for (uint32_t i = 0; i < w->members_count; i++)
        news[w->members[i].rank] = w->members[i].news;
    culprit = lh_first_failure_find(news, w->launch.size, 0, g_get_monotonic_time(), w->waited_us);
    /* The missing rank may be one of these. */
    if (w->strangers != NULL) {
        char *text = g_strdup_printf("%s; %s", culprit.text, w->strangers);

        g_free(culprit.text);
        culprit.text = text;
    }
    return culprit;
}

/* ---- the end in other processes ---- */

/* Decides without the first process: either that one is at fault or this one is cut off. */
static LhFirstFailure
judge_alone(const LhStar *w, const GError *failure)
{
    const LhStarMember *first = &w->members[0];
    const uint32_t others = w->hosts->len;
    g_autofree LhRankNews *news = g_new0(LhRankNews, w->launch.size);
    g_autofree struct sockaddr_storage *addresses = g_new0(struct sockaddr_storage, others + 1);
    g_autofree bool *reached = g_new0(bool, others + 1);
    bool reaches = false;

    if (first->news.state == LH_RANK_MISSING)
        return (LhFirstFailure){ .rank = 0,
                                 .status = failure->code,
                                 .text = g_strdup(failure->message) };
    for (uint32_t i = 0; i < others; i++)
        addresses[i] = g_array_index(w->hosts, struct sockaddr_storage, i);
    for (uint32_t r = 0; r < w->launch.size; r++)
        news[r].state = LH_RANK_ANSWERS;
    news[w->launch.rank] = own_news(w, failure);
    news[0] = first->news;
    if (news[0].state == LH_RANK_ANSWERS)
        news[0].state = LH_RANK_SILENT;
    if (news[0].state == LH_RANK_SILENT) {
        if (first->elsewhere)
            (void)lh_address_socket(&first->address, w->launch.port, &addresses[others]);
        lh_hosts_reachable(addresses, others + (first->elsewhere ? 1 : 0), REACH_US, reached);
        news[0].host_answers = !first->elsewhere || reached[others];
        for (uint32_t i = 0; i < others; i++)
            reaches = reaches || reached[i];
    }
    if (news[0].state == LH_RANK_SILENT && !news[0].host_answers && !reaches && others > 1) {
        return (LhFirstFailure){ .rank = w->launch.rank,
                                 .status = LH_ERROR_RUNTIME,
                                 .text = g_strdup_printf("rank %u on host %s reaches no other host",
                                                         w->launch.rank, w->host) };
    }
    return lh_first_failure_find(news, w->launch.size, w->launch.rank, g_get_monotonic_time(), 0);
}

/* Reports to the first process, and waits for its verdict. */
static void
ask_for_verdict(LhStar *w, const GError *failure)
{
    const int64_t end_us = g_get_monotonic_time() + VERDICT_US;
    LhStarMember *first = &w->members[0];

    if (failure->domain != LH_WAITED) {
        g_autoptr(GBytes) content =
            lh_failure_pack(w->launch.rank, failure->code, failure->message);

        lh_peer_send(&first->peer, LH_FRAME_FAILURE, content);
    } else if (!w->was_told) {
        tell_standing(w, true);
    }
    while (w->verdict.text == NULL && first->peer.socket >= 0 && g_get_monotonic_time() < end_us)
        lh_star_move(w, LH_STAR_LOOK_MS);
}

/* ---- the end ---- */

static bool
has_taken_all(const LhStar *w)
{
    for (uint32_t i = 0; i < w->members_count; i++) {
        if (w->members[i].peer.socket >= 0 && !lh_peer_is_idle(&w->members[i].peer))
            return false;
    }
    return true;
}

void
lh_star_tell_last(LhStar *w, LhControlFrameKind kind, GBytes *content)
{
    const int64_t end_us = g_get_monotonic_time() + FAREWELL_US;

    if (w->told)
        return;
    w->told = true;
    for (uint32_t i = 0; i < w->members_count; i++)
        lh_peer_send(&w->members[i].peer, kind, content);
    while (!has_taken_all(w) && g_get_monotonic_time() < end_us)
        lh_star_move(w, LH_STAR_LOOK_MS);
}

/* The verdict, followed by what this process observed if that adds anything. A failure that several
 * processes report alike, such as a missing file, is attributed to none. */
static char *
compose(const LhStar *w, const GError *failure)
{
    const bool failed = failure->domain != LH_WAITED;

    if (failed && g_str_has_suffix(w->verdict.text, failure->message))
        return g_strdup(w->verdict.rank == w->launch.rank ? w->verdict.text : failure->message);
    if (w->was_told || (failed && w->verdict.rank == w->launch.rank) ||
        strcmp(w->verdict.text, failure->message) == 0)
        return g_strdup(w->verdict.text);
    return g_strdup_printf("%s\n  seen by rank %u: %s", w->verdict.text, w->launch.rank,
                           failure->message);
}

char *
lh_star_judge(LhStar *w, const GError *failure, int *status)
{
    g_autoptr(GBytes) content = NULL;

    w->ending = true;
    w->told = w->told && w->verdict.text != NULL;
    w->expected_bytes = MAX(w->expected_bytes, ENDING_BYTES_MAX);
    if (w->verdict.text == NULL && w->launch.rank != 0)
        ask_for_verdict(w, failure);
    else if (w->verdict.text == NULL)
        hear_all(w, failure);
    if (w->verdict.text == NULL)
        w->verdict = w->launch.rank == 0 ? judge_all(w, failure) : judge_alone(w, failure);
    content = lh_failure_pack(w->verdict.rank, w->verdict.status, w->verdict.text);
    if (w->launch.rank == 0 || w->verdict.rank == 0)
        lh_star_tell_last(w, LH_FRAME_VERDICT, content);
    w->told = true;
    *status = w->verdict.status;
    return compose(w, failure);
}

/* Appends as much as fits; allocates no memory, as its caller requires. */
static void
append_words(char *words, const char *more)
{
    const size_t length = strnlen(words, LH_LAST_WORDS_BYTES);
    const size_t count = strnlen(more, LH_LAST_WORDS_BYTES - length);

    memcpy(words + length, more, count);
    words[length + count] = '\0';
}

/* A partially sent frame corrupts this one; the reader then reports that this rank has failed. */
void
lh_star_say_last(const LhStar *w, int status, const char *text)
{
    const bool first = w->launch.rank == 0; /* no other process decides then */
    char words[LH_LAST_WORDS_BYTES + 1] = "";
    unsigned char frame[LH_LAST_FRAME_BYTES];
    size_t bytes;

    if (first && w->trouble != NULL) { /* the cause for which the launcher ends this process */
        text = w->trouble;
    } else if (first) {
        append_words(words, "rank 0 on host ");
        append_words(words, w->host);
        append_words(words, ": ");
    }
    append_words(words, text);
    bytes = lh_last_words_pack(first ? LH_FRAME_VERDICT : LH_FRAME_FAILURE, w->launch.rank, status,
                               words, frame);
    /* A process that does not receive it is gone, or will find that this one is. */
    for (uint32_t i = 0; !w->told && i < w->members_count; i++) {
        if (w->members[i].peer.socket >= 0)
            (void)send(w->members[i].peer.socket, frame, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}
