/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The patterns of patterns.h in a program that simulates nothing else: about the least work of any
 * simulator of them, and so the yardstick for longhaul. bench_engine runs it beside the engine, and
 * the gate (gate.py) counts its instructions.
 *
 *   bare_ring P ring|bal COMPUTE_US JITTER_PERCENT MESSAGE_BYTES
 *
 * Peers, steps and links of the bench platform are hard-coded: there are no schedules, ops, routes
 * or costs, and nothing is checked. The rest is as in the engine: integer picoseconds, an indexed
 * heap, and max-min fair sharing of bandwidth once all events of an instant are done, among the
 * links affected. Nothing is allocated during the run. Prints one line, as simgrid_ring does.
 */
#include "jitter.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { NODE_RANKS = 8, LINKS_MAX = 4, CHILDREN = 4 };

#define NOWHERE UINT32_MAX
#define PS_PER_S 1e12
#define NVLINK_BYTES_PER_S 300e9
#define NIC_BYTES_PER_S 12.5e9
#define NODE_LATENCY_PS UINT64_C(2000000)
#define FABRIC_LATENCY_PS UINT64_C(5000000)
#define EQUAL_SHARES (1 + 1e-12) /* shares of bandwidth this close are equal */

/* Events by time. Event p is the end of rank p's compute; event ranks + p is the end of its
 * message's latency, then of the message. */
typedef struct {
    uint64_t *times_ps;
    uint32_t *heap;   /* of events; 4 children each */
    uint32_t *places; /* of each event in the heap, or NOWHERE */
    uint32_t count;
} Queue;

/* The message of a rank; one at a time. */
typedef struct {
    uint32_t links[LINKS_MAX], places[LINKS_MAX]; /* and its place in the list of each link */
    uint32_t links_count;
    uint32_t round; /* the round of bandwidth sharing that gives it a rate; 0: it has one */
    bool flows;     /* its latency is over */
    double left_bytes, bytes_per_s; /* as of since_ps */
    uint64_t since_ps;
} Message;

typedef struct {
    uint32_t *messages; /* in flight over the link */
    uint32_t messages_count;
    uint32_t round;         /* likewise */
    uint32_t waiting_count; /* messages without a share yet */
    double bytes_per_s, free_bytes_per_s;
} Link;

typedef struct {
    uint32_t step;  /* NOWHERE before the first */
    uint32_t waits; /* outstanding of: compute, send, receive */
} Rank;

typedef struct {
    bool bal;
    uint32_t ranks_count, steps_count, nodes_count, links_count;
    double compute_s, jitter, bytes;
    Queue queue;
    Rank *ranks;
    Message *messages;
    /* Links of each rank to and from its switch, then of each node to and from the fabric. */
    Link *links;
    uint32_t *changed; /* links whose messages began or ended at this instant, with duplicates */
    uint32_t changed_count;
    uint32_t round; /* of bandwidth sharing; the links involved and the number of their messages */
    uint32_t *concerned;
    uint32_t concerned_count, sharing_count;
    uint64_t now_ps, events;
} Simulation;

/* --- the queue ----------------------------------------------------------------------------------
 */

static void
put(Queue *q, uint32_t place, uint32_t event)
{
    q->heap[place] = event;
    q->places[event] = place;
}

static void
rise(Queue *q, uint32_t place)
{
    const uint32_t event = q->heap[place];
    const uint64_t time_ps = q->times_ps[event];

    while (place > 0) {
        const uint32_t parent = (place - 1) / CHILDREN;

        if (q->times_ps[q->heap[parent]] <= time_ps)
            break;
        put(q, place, q->heap[parent]);
        place = parent;
    }
    put(q, place, event);
}

/* The earliest of the children from @first on. Branchless: which one is earliest is
 * unpredictable. */
static uint32_t
least_child(const Queue *q, uint32_t first)
{
    const uint32_t end = first + CHILDREN < q->count ? first + CHILDREN : q->count;
    uint64_t least_ps = q->times_ps[q->heap[first]];
    uint32_t least = first;

    for (uint32_t child = first + 1; child < end; child++) {
        const uint64_t child_ps = q->times_ps[q->heap[child]];

        least = child_ps < least_ps ? child : least;
        least_ps = child_ps < least_ps ? child_ps : least_ps;
    }
    return least;
}

static void
sink(Queue *q, uint32_t place)
{
    const uint32_t event = q->heap[place];
    const uint64_t time_ps = q->times_ps[event];

    while (CHILDREN * place + 1 < q->count) {
        const uint32_t child = least_child(q, CHILDREN * place + 1);

        if (q->times_ps[q->heap[child]] >= time_ps)
            break;
        put(q, place, q->heap[child]);
        place = child;
    }
    put(q, place, event);
}

/* Schedules @event at @time_ps, whether or not it is queued. */
static void
set_event(Queue *q, uint32_t event, uint64_t time_ps)
{
    const bool waits = q->places[event] != NOWHERE;
    const bool sooner = !waits || time_ps < q->times_ps[event];

    q->times_ps[event] = time_ps;
    if (!waits)
        put(q, q->count++, event);
    if (sooner)
        rise(q, q->places[event]);
    else
        sink(q, q->places[event]);
}

static uint32_t
take_event(Queue *q)
{
    const uint32_t event = q->heap[0];

    q->places[event] = NOWHERE;
    if (--q->count > 0) {
        put(q, 0, q->heap[q->count]);
        sink(q, 0);
    }
    return event;
}

/* --- bandwidth ----------------------------------------------------------------------------------
 */

static void
concern(Simulation *s, uint32_t link)
{
    Link *l = &s->links[link];

    if (l->round == s->round)
        return;
    l->round = s->round;
    l->free_bytes_per_s = l->bytes_per_s;
    l->waiting_count = l->messages_count;
    s->concerned[s->concerned_count++] = link;
}

/* Collects the changed links, those that share messages with them, and so on. */
static void
find_concerned(Simulation *s)
{
    s->round++;
    s->concerned_count = s->sharing_count = 0;
    for (uint32_t i = 0; i < s->changed_count; i++)
        concern(s, s->changed[i]);
    s->changed_count = 0;
    for (uint32_t i = 0; i < s->concerned_count; i++) {
        const Link *l = &s->links[s->concerned[i]];

        for (uint32_t k = 0; k < l->messages_count; k++) {
            Message *m = &s->messages[l->messages[k]];

            if (m->round == s->round)
                continue;
            m->round = s->round;
            s->sharing_count++;
            for (uint32_t j = 0; j < m->links_count; j++)
                concern(s, m->links[j]);
        }
    }
}

static void
give_share(Simulation *s, uint32_t sender, double bytes_per_s)
{
    Message *m = &s->messages[sender];

    m->round = 0;
    s->sharing_count--;
    for (uint32_t j = 0; j < m->links_count; j++) {
        s->links[m->links[j]].free_bytes_per_s -= bytes_per_s;
        s->links[m->links[j]].waiting_count--;
    }
    if (m->bytes_per_s == bytes_per_s)
        return;
    m->left_bytes -= m->bytes_per_s * (double)(s->now_ps - m->since_ps) / PS_PER_S;
    m->since_ps = s->now_ps;
    m->bytes_per_s = bytes_per_s;
    set_event(&s->queue, s->ranks_count + sender,
              s->now_ps + (uint64_t)(m->left_bytes / bytes_per_s * PS_PER_S + 0.5));
}

static double
least_share(const Simulation *s)
{
    double least = NVLINK_BYTES_PER_S;

    for (uint32_t i = 0; i < s->concerned_count; i++) {
        const Link *l = &s->links[s->concerned[i]];

        if (l->free_bytes_per_s < least * l->waiting_count)
            least = l->free_bytes_per_s / l->waiting_count;
    }
    return least;
}

/* Keeps the links whose messages still lack a share. */
static void
forget_filled(Simulation *s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->concerned_count; i++)
        if (s->links[s->concerned[i]].waiting_count > 0)
            s->concerned[kept++] = s->concerned[i];
    s->concerned_count = kept;
}

/* Max-min fairness: the links with the least share become full, their messages get it, and so on
 * with the remaining capacity. */
static void
share_bandwidth(Simulation *s)
{
    find_concerned(s);
    forget_filled(s);
    while (s->sharing_count > 0) {
        const double least = least_share(s);

        for (uint32_t i = 0; i < s->concerned_count; i++) {
            const Link *l = &s->links[s->concerned[i]];

            if (l->waiting_count == 0 ||
                l->free_bytes_per_s > least * EQUAL_SHARES * l->waiting_count)
                continue;
            for (uint32_t k = 0; k < l->messages_count; k++)
                if (s->messages[l->messages[k]].round == s->round)
                    give_share(s, l->messages[k], least);
        }
        forget_filled(s);
    }
}

/* --- messages -----------------------------------------------------------------------------------
 */

static uint32_t
receiver_of(const Simulation *s, uint32_t sender, uint32_t step)
{
    const uint32_t to = sender + (s->bal ? step + 1 : 1);

    return to < s->ranks_count ? to : to - s->ranks_count;
}

static uint32_t
sender_to(const Simulation *s, uint32_t receiver, uint32_t step)
{
    const uint32_t distance = s->bal ? step + 1 : 1;

    return receiver >= distance ? receiver - distance : receiver + s->ranks_count - distance;
}

/* Starts the message of @sender in @step if both ends are ready. */
static void
try_message(Simulation *s, uint32_t sender, uint32_t step)
{
    const uint32_t receiver = receiver_of(s, sender, step);
    const uint32_t from = sender / NODE_RANKS, to = receiver / NODE_RANKS;
    Message *m = &s->messages[sender];

    if (s->ranks[sender].step != step || s->ranks[receiver].step != step)
        return;
    m->links_count = 0;
    m->links[m->links_count++] = sender;
    if (from != to) {
        m->links[m->links_count++] = 2 * s->ranks_count + from;
        m->links[m->links_count++] = 2 * s->ranks_count + s->nodes_count + to;
    }
    m->links[m->links_count++] = s->ranks_count + receiver;
    set_event(&s->queue, s->ranks_count + sender,
              s->now_ps + (from == to ? NODE_LATENCY_PS : FABRIC_LATENCY_PS));
}

static void
let_flow(Simulation *s, uint32_t sender)
{
    Message *m = &s->messages[sender];

    m->flows = true;
    m->round = 0;
    m->bytes_per_s = 0;
    m->left_bytes = s->bytes;
    m->since_ps = s->now_ps;
    for (uint32_t j = 0; j < m->links_count; j++) {
        Link *l = &s->links[m->links[j]];

        m->places[j] = l->messages_count;
        l->messages[l->messages_count++] = sender;
        s->changed[s->changed_count++] = m->links[j];
    }
}

/* Records that @sender's message is at @place of @link. */
static void
move_message(Simulation *s, uint32_t link, uint32_t place, uint32_t sender)
{
    Message *m = &s->messages[sender];

    s->links[link].messages[place] = sender;
    for (uint32_t j = 0; j < m->links_count; j++)
        if (m->links[j] == link)
            m->places[j] = place;
}

static void
stop_flow(Simulation *s, uint32_t sender)
{
    Message *m = &s->messages[sender];

    m->flows = false;
    for (uint32_t j = 0; j < m->links_count; j++) {
        Link *l = &s->links[m->links[j]];

        move_message(s, m->links[j], m->places[j], l->messages[--l->messages_count]);
        if (l->messages_count > 0)
            s->changed[s->changed_count++] = m->links[j];
    }
}

/* --- ranks --------------------------------------------------------------------------------------
 */

static uint64_t
compute_ps(const Simulation *s, uint64_t rank, uint64_t step)
{
    return (uint64_t)(s->compute_s * (1.0 + s->jitter * bench_jitter(rank, step)) * PS_PER_S + 0.5);
}

static void
begin_step(Simulation *s, uint32_t rank)
{
    const uint32_t step = s->ranks[rank].step;

    if (step == s->steps_count)
        return;
    s->ranks[rank].waits = 3;
    set_event(&s->queue, rank, s->now_ps + compute_ps(s, rank, step));
    try_message(s, rank, step);
    try_message(s, sender_to(s, rank, step), step);
}

/* One of the events that @rank waits for has happened. */
static void
arrive(Simulation *s, uint32_t rank)
{
    if (--s->ranks[rank].waits > 0)
        return;
    s->ranks[rank].step++;
    begin_step(s, rank);
}

static void
handle(Simulation *s, uint32_t event)
{
    const uint32_t sender = event - s->ranks_count;
    uint32_t receiver;

    if (event < s->ranks_count) {
        s->events++;
        arrive(s, event);
    } else if (!s->messages[sender].flows) {
        let_flow(s, sender);
    } else {
        s->events++;
        receiver = receiver_of(s, sender, s->ranks[sender].step);
        stop_flow(s, sender);
        arrive(s, sender);
        arrive(s, receiver);
    }
}

static void
play(Simulation *s)
{
    for (uint32_t p = 0; p < s->ranks_count; p++) {
        s->ranks[p].step = 0;
        begin_step(s, p);
    }
    while (s->queue.count > 0) {
        s->now_ps = s->queue.times_ps[s->queue.heap[0]];
        do
            handle(s, take_event(&s->queue));
        while (s->queue.count > 0 && s->queue.times_ps[s->queue.heap[0]] == s->now_ps);
        if (s->changed_count > 0)
            share_bandwidth(s);
    }
}

/* --- start and end
 * ------------------------------------------------------------------------------ */

/* Zeroed memory, never NULL, freed at the end of the process. */
static void *
room(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL) {
        fprintf(stderr, "bare_ring: no memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void
make_room(Simulation *s)
{
    const uint32_t events = 2 * s->ranks_count;

    s->nodes_count = (s->ranks_count + NODE_RANKS - 1) / NODE_RANKS;
    s->links_count = 2 * s->ranks_count + 2 * s->nodes_count;
    s->queue.times_ps = room(events, sizeof(uint64_t));
    s->queue.heap = room(events, sizeof(uint32_t));
    s->queue.places = room(events, sizeof(uint32_t));
    memset(s->queue.places, 0xff, events * sizeof(uint32_t));
    s->ranks = room(s->ranks_count, sizeof(Rank));
    s->messages = room(s->ranks_count, sizeof(Message));
    s->links = room(s->links_count, sizeof(Link));
    s->concerned = room(s->links_count, sizeof(uint32_t));
    /* at one instant a rank's message may end and its next one begin */
    s->changed = room(2 * LINKS_MAX * (size_t)s->ranks_count, sizeof(uint32_t));
    for (uint32_t p = 0; p < s->ranks_count; p++)
        s->ranks[p].step = NOWHERE;
    for (uint32_t i = 0; i < s->links_count; i++) {
        const bool nic = i >= 2 * s->ranks_count;

        s->links[i].bytes_per_s = nic ? NIC_BYTES_PER_S : NVLINK_BYTES_PER_S;
        s->links[i].messages = room(nic ? NODE_RANKS : 1, sizeof(uint32_t));
    }
}

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int
main(int argc, char **argv)
{
    static Simulation s;
    struct rusage usage;
    double began_s, ended_s;

    if (argc != 6 || (s.ranks_count = (uint32_t)strtoul(argv[1], NULL, 10)) < 2) {
        fprintf(stderr, "usage: bare_ring P ring|bal COMPUTE_US JITTER_PERCENT MESSAGE_BYTES\n");
        return 2;
    }
    s.bal = strcmp(argv[2], "bal") == 0;
    s.compute_s = (double)strtoul(argv[3], NULL, 10) / 1e6;
    s.jitter = (double)strtoul(argv[4], NULL, 10) / 100;
    s.bytes = (double)strtoull(argv[5], NULL, 10);
    s.steps_count = s.bal ? s.ranks_count / 2 : s.ranks_count;
    make_room(&s);
    began_s = cpu_seconds();
    play(&s);
    ended_s = cpu_seconds();
    getrusage(RUSAGE_SELF, &usage);
    printf("bare %s P=%" PRIu32 " cpu_s=%.6f rss_bytes=%ld events=%" PRIu64 " makespan_s=%.9f\n",
           s.bal ? "bal" : "ring", s.ranks_count, ended_s - began_s, usage.ru_maxrss * 1024,
           s.events, (double)s.now_ps / PS_PER_S);
    return EXIT_SUCCESS;
}
