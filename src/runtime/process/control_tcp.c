/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank a process, and a star of TCP connections between them, of those that torchrun or Slurm
 * has started here. What processes tell each other goes to the first one and comes back from it, in
 * frames (frames.h), so that it knows which of them is missing. The star is made once in a process,
 * and ends with it.
 *
 * A connection that is closed before its process has said that it ends is a process that is gone.
 * Whoever fails tells the first process, which tells all.
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

#define STEP_US_MAX 1000000 /* more than that, and this process itself was stopped */
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

/* At the end of the process: those that still need it would be told of a failure. The star itself
 * stays, for what may still go wrong (control_mpi.c). */
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

/* Hands @bytes for all members over. */
static bool
queue_all(LhStar *w, const GByteArray *bytes, const char *phase, GError **error)
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
    return true;
}

/* Sends @bytes to all members, and waits until they have left. */
static bool
send_all(LhStar *w, const GByteArray *bytes, const char *phase, GError **error)
{
    return queue_all(w, bytes, phase, error) && wait_for(w, has_taken, phase, error);
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

/* Others do not wait until what they tell has left: an answer to the first process's question,
 * which may follow, leaves by the same connection. What comes back says that it has. */
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
    return share_in(control, &(Contribution){ bytes, limit }, all,
                    "the exchange of what processes tell each other", error);
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
    return tcp_collect(control, &(Contribution){ bytes, limit }, all,
                       "the gathering of the results", error);
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

/* The star stays for those that are opened later. */
void
lh_star_close(void *control)
{
    (void)control;
}

/* ---- those that torchrun and Slurm start ---- */

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
