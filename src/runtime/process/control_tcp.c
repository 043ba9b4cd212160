/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control plane over TCP: one rank per process, and a star of connections between processes
 * started by torchrun or Slurm. All data goes to the first process and comes back from it, in
 * frames (frames.h), so that it knows which process is missing. The star is created once per
 * process and lasts until the process ends.
 *
 * A connection that closes before its process has sent an end frame means that the process is gone.
 * A process that fails tells the first one, which tells all.
 */
#include "runtime/process/control_tcp_private.h"

#include "base/error.h"
#include "base/time_units.h"
#include "runtime/api/control.h"
#include "runtime/process/endpoint.h"
#include "runtime/process/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP_US_MAX 1000000 /* a longer step means that this process was suspended */
#define DATA_BYTES_MAX (UINT32_MAX / 2)
/* Limits of what a member may send before data is expected: bytes per frame, and frames. */
#define EARLY_BYTES_MAX (64U << 10)
#define EARLY_FRAMES_MAX 16

/* The star of this process; NULL: not created. */
static LhStar *own_world;

/* ---- members ---- */

/* Handles a frame of a member. */
static void
take_frame(LhStar *w, LhStarMember *m, const LhControlFrame *frame)
{
    m->news.heard_us = g_get_monotonic_time();
    if (frame->kind == LH_FRAME_DATA && w->ending)
        return; /* later frames matter */
    if (frame->kind == LH_FRAME_DATA)
        g_queue_push_tail(&m->received, g_bytes_ref(frame->content));
    else if (frame->kind == LH_FRAME_END)
        m->ended = true;
    else
        lh_star_take_news(w, m, frame);
}

/* Whether data is expected of the member. */
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

/* Whether the first frame, with all that follows it, stays unread until data is expected. */
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
    if (m->broken) /* keeps reading, so that the member still gets the failure */
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

/* Sets the error for w->trouble. Returns false. */
static bool
report_trouble(LhStar *w, GError **error)
{
    w->was_told = true;
    g_set_error(error, LH_WAITED, LH_ERROR_RUNTIME, "the run was aborted: %s",
                w->verdict.text != NULL ? w->verdict.text : w->trouble);
    return false;
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
        add_socket(polled, lh_listener_events(w->door), POLLIN);
    for (uint32_t i = 0; i < w->members_count; i++)
        add_socket(polled, w->members[i].peer.socket, lh_peer_events(&w->members[i].peer));
    (void)poll((struct pollfd *)(void *)polled->data, polled->len, timeout_ms);
    if (w->door != NULL)
        lh_listener_move(w->door);
    for (uint32_t i = 0; i < w->members_count; i++)
        look_at_member(w, &w->members[i]);
    lh_star_say_standing(w);
    if (w->starter->progress != NULL)
        w->starter->progress();
}

/* The condition waited for on each member. */
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

/* Members that have ended will never be ready. */
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
    g_autofree char *strangers = w->door == NULL ? NULL : lh_listener_strangers(w->door);
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

/* Records that this process waits in @phase, for the first process if that is another. */
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

/* Waits until all members are ready. @phase names the wait, such as "the barrier". */
static bool
wait_for(LhStar *w, ReadyFunc is_ready, const char *phase, GError **error)
{
    const int64_t limit_us = w->deadline_us + (w->launch.rank == 0 ? 0 : LH_STAR_PATIENCE_US);
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

/* ---- the end ---- */

/* Sends an end frame when the process exits; otherwise the others would report a failure. The star
 * itself stays, for failures that may still occur (control_mpi.c). */
static void
leave_star(void)
{
    lh_star_tell_last(own_world, LH_FRAME_END, NULL);
}

char *
lh_star_conclude(const GError *failure, int *status)
{
    if (own_world != NULL)
        return lh_star_judge(own_world, failure, status);
    *status = failure->code;
    return g_strdup(failure->message);
}

void
lh_star_last_words(int status, const char *text)
{
    if (own_world != NULL)
        lh_star_say_last(own_world, status, text);
}

/* ---- the interface ---- */

static LhStar *
world_new(const LhLauncherEnv *launch)
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

bool
lh_star_wait_for_all(LhStar *w, GError **error)
{
    return wait_for(w, is_connected, "the start", error);
}

static bool
make_world(const LhStarter *starter, uint32_t ranks, int64_t deadline_us, GError **error)
{
    LhLauncherEnv launch = { 0 };

    if (!starter->place(&launch, error))
        return false;
    if (ranks != 0 && launch.size != ranks) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "there are %u processes for %u ranks; start as many as there are ranks",
                    launch.size, ranks);
        lh_launcher_env_clear(&launch);
        return false;
    }
    own_world = world_new(&launch);
    own_world->starter = starter;
    own_world->deadline_us = deadline_us;
    atexit(leave_star);
    return lh_star_meet(own_world, error);
}

void *
lh_star_open(const LhStarter *starter, uint32_t ranks, int64_t deadline_us, LhControlPlace *place,
             GError **error)
{
    if (own_world == NULL && !make_world(starter, ranks, deadline_us, error))
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

/* Queues @bytes for all members. */
static bool
queue_all(LhStar *w, const GByteArray *bytes, const char *phase, GError **error)
{
    g_autoptr(GBytes) content = NULL;

    if (bytes->len > DATA_BYTES_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u has %u bytes to send in %s; the limit is %u", w->launch.rank,
                    bytes->len, phase, DATA_BYTES_MAX);
        return false;
    }
    content = g_bytes_new(bytes->data, bytes->len);
    for (uint32_t i = 0; i < w->members_count; i++)
        lh_peer_send(&w->members[i].peer, LH_FRAME_DATA, content);
    return true;
}

/* Sends @bytes to all members, and waits until they have left. */
static bool
send_all(LhStar *w, const GByteArray *bytes, const char *phase, GError **error)
{
    return queue_all(w, bytes, phase, error) && wait_for(w, has_taken, phase, error);
}

/* Appends the data of all members, in rank order. */
static bool
receive_all(LhStar *w, gsize limit, GByteArray *all, const char *phase, GError **error)
{
    bool ok;

    w->expected_bytes = CLAMP(limit, 1, DATA_BYTES_MAX);
    lh_star_move(w, 0); /* data that came early causes no further socket event */
    ok = wait_for(w, has_data, phase, error);
    w->expected_bytes = 0;
    for (uint32_t i = 0; ok && i < w->members_count; i++) {
        g_autoptr(GBytes) content = g_queue_pop_head(&w->members[i].received);
        gsize bytes;
        const guint8 *data = g_bytes_get_data(content, &bytes);

        if (bytes > limit) {
            g_autofree char *why =
                g_strdup_printf("it sends %" G_GSIZE_FORMAT " bytes in %s, where at most "
                                "%" G_GSIZE_FORMAT " are expected",
                                bytes, phase, limit);

            lh_star_note(w, &w->members[i], LH_RANK_FAILED, LH_ERROR_RUNTIME, why);
            return report_trouble(w, error);
        }
        if (bytes > DATA_BYTES_MAX - MIN(all->len, DATA_BYTES_MAX)) {
            g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "the data of all ranks in %s exceeds the limit of one process", phase);
            return false;
        }
        g_byte_array_append(all, data, (guint)bytes);
    }
    return ok;
}

/* The data of this process, and the limit of every process. */
typedef struct {
    const GByteArray *bytes;
    gsize limit;
} Contribution;

/* Gathers the data of all processes in the first one, which appends it to @all in rank order. */
static bool
tcp_collect(LhStar *w, const Contribution *mine, GByteArray *all, const char *phase, GError **error)
{
    if (w->launch.rank != 0)
        return send_all(w, mine->bytes, phase, error);
    g_byte_array_append(all, mine->bytes->data, mine->bytes->len);
    return receive_all(w, mine->limit, all, phase, error);
}

/* Broadcasts @all of the first process. */
static bool
tcp_spread(LhStar *w, gsize limit, GByteArray *all, const char *phase, GError **error)
{
    if (w->launch.rank == 0)
        return send_all(w, all, phase, error);
    return receive_all(w, MIN(limit, DATA_BYTES_MAX) * w->launch.size, all, phase, error);
}

/* Gathers and broadcasts. The others do not wait for their data to leave: an answer to a question
 * of the first process, which may follow, uses the same connection, and the broadcast implies that
 * the data has arrived. */
static bool
share_in(LhStar *w, const Contribution *mine, GByteArray *all, const char *phase, GError **error)
{
    const bool told = w->launch.rank != 0 ? queue_all(w, mine->bytes, phase, error)
                                          : tcp_collect(w, mine, all, phase, error);

    return told && tcp_spread(w, mine->limit, all, phase, error);
}

bool
lh_star_share(void *control, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    return share_in(control, &(Contribution){ bytes, limit }, all, "the exchange between processes",
                    error);
}

bool
lh_star_barrier(void *control, GError **error)
{
    g_autoptr(GByteArray) nothing = g_byte_array_new();

    return share_in(control, &(Contribution){ nothing, 0 }, nothing, "the barrier", error);
}

bool
lh_star_gather(void *control, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    return tcp_collect(control, &(Contribution){ bytes, limit }, all, "the gather of the results",
                       error);
}

bool
lh_star_failed(void *control, GError **error)
{
    LhStar *w = control;

    lh_star_move(w, 0);
    return w->trouble != NULL && !report_trouble(w, error);
}

void
lh_star_standing(void *control, const char *text, const uint32_t *awaited, uint32_t count)
{
    LhStar *w = control;

    g_free(w->at);
    w->at = g_strdup(text);
    g_array_set_size(w->awaited, 0);
    g_array_append_vals(w->awaited, awaited, count);
}

/* The star stays for later opens. */
void
lh_star_close(void *control)
{
    (void)control;
}

/* ---- torchrun and Slurm ---- */

static void *
torchrun_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    static const LhStarter starter = { .place = lh_launcher_env_torchrun };

    return lh_star_open(&starter, ranks, deadline_us, place, error);
}

static void *
slurm_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    static const LhStarter starter = { .place = lh_launcher_env_slurm };

    return lh_star_open(&starter, ranks, deadline_us, place, error);
}

const LhControl lh_control_torchrun = {
    .name = "torchrun",
    .open = torchrun_open,
    LH_STAR_CONTROL,
};

const LhControl lh_control_slurm = {
    .name = "slurm",
    .open = slurm_open,
    LH_STAR_CONTROL,
};
