/*
 * Max-min fair sharing, solved locally.
 *
 * A rate allocation is max-min fair exactly when every flow has a bottleneck: a saturated link on
 * which no other flow is faster. So after a start or an end only flows whose bottleneck broke need
 * new rates. Those form the set; the set is solved by progressive filling with all other flows held
 * fixed; then the links it touched are checked, flows whose bottleneck broke join the set, and the
 * solve repeats until nobody joins.
 *
 * Most links cannot limit anybody: a flow's rate is at most the capacity of its narrowest link, and
 * a link that can carry that much of each of its flows at once is slack. Slack links are left out
 * of the solve.
 *
 * What all messages of a pair of GPUs may reach together is a link like any other, which exists as
 * long as there are such messages.
 *
 * What is left out: packets, queues and protocols; a flow is a fluid, and its latency is added when
 * its last byte has been sent.
 */
#include "sim/flows.h"

#include <math.h>
#include <string.h>

#define RELATIVE_SLACK 1e-9
#define S_PER_PS 1e-12
#define NO_LINK UINT32_MAX
#define HOP_BITS 3 /* a link's list holds flow << HOP_BITS | hop */

G_STATIC_ASSERT(LH_ROUTE_MAX <= 1 << HOP_BITS);

typedef struct {
    double rate;           /* bytes/s */
    double next_rate;      /* while in the set; negative: not yet fixed */
    double narrowest_rate; /* capacity of its narrowest link: it is never faster */
    uint32_t narrowest;
    uint32_t bottleneck; /* link that limits it */
    uint32_t next_bottleneck;
    uint32_t epoch;      /* in the set if equal to LhFlows.epoch */
    uint8_t links_count; /* 0: not on the network (sent, or free) */
    uint32_t links[LH_ROUTE_MAX];
    uint32_t positions[LH_ROUTE_MAX]; /* in each link's list */
    double remaining_bytes;           /* at updated_ps */
    LhTime updated_ps;
    LhTime finish_ps; /* may be later than the heap's key: see schedule() */
    LhTime latency_ps;
} Flow;

#define ENTRIES_INLINE 2

/* One cache line: links are what a large network has most of. */
typedef struct {
    double capacity; /* bytes/s */
    union {
        double demand;  /* sum of narrowest_rate over its flows: slack if at most the capacity */
        LhTime free_ps; /* FIFO model: when the link has sent what was posted so far */
    };
    double residual; /* while solving: left for unfixed flows of the set */
    union {
        uint64_t bytes;
        struct {
            uint32_t source, destination;
        } pair; /* of a pair's link */
    };
    uint32_t *entries; /* in_place until there are more than ENTRIES_INLINE */
    uint32_t entries_count, entries_capacity;
    uint32_t in_place[ENTRIES_INLINE];
    uint32_t open;  /* while solving: unfixed flows of the set */
    uint32_t epoch; /* touched if equal to LhFlows.epoch */
} Link;

G_STATIC_ASSERT(sizeof(Link) == 64);

/* A link's fair share, in the solver's heap. */
typedef struct {
    double share;
    uint32_t link;
    uint32_t open; /* when it was worked out: as long as that is so, the share still holds */
} Share;

typedef struct {
    uint32_t *items;
    uint32_t count, capacity;
} Indices;

/* Messages on their last stretch: sent whole, their latency still to come. With one latency they
 * arrive as they left. */
typedef struct {
    LhTime latency_ps;
    LhTime *times; /* ring buffers */
    uint32_t *flows;
    uint32_t first, count, mask;
} DelayLine;

struct _LhFlows {
    LhNetworkModel model;
    LhHeap *heap;
    uint32_t heap_first;
    Flow *flows;
    uint32_t flows_count, flows_capacity;
    Link *links;
    uint32_t links_count, links_capacity;
    uint32_t pairs_first; /* links from here on are those of pairs */
    Indices pairs_free;
    uint32_t epoch;
    Indices set;     /* flows being solved */
    Indices touched; /* links they cross */
    Indices free;    /* flow indices to reuse ... */
    Indices retired; /* ... after the next settle */
    Share *shares;
    uint32_t shares_count, shares_capacity;
    DelayLine *lines; /* one per distinct latency: a handful */
    uint32_t lines_count;
    LhTime next_arrival;
};

static inline void
push(Indices *a, uint32_t item)
{
    if (a->count == a->capacity) {
        a->capacity = MAX(16, a->capacity * 2);
        a->items = g_renew(uint32_t, a->items, a->capacity);
    }
    a->items[a->count++] = item;
}

static void
reserve_links(LhFlows *f, uint32_t capacity)
{
    Link *links = g_aligned_alloc0(MAX(1, capacity), sizeof(Link), sizeof(Link));

    for (uint32_t i = 0; i < f->links_count; i++) {
        links[i] = f->links[i];
        if (f->links[i].entries == f->links[i].in_place)
            links[i].entries = links[i].in_place;
    }
    g_aligned_free(f->links);
    f->links = links;
    f->links_capacity = capacity;
}

static uint32_t
add_link(LhFlows *f)
{
    Link *link = &f->links[f->links_count];

    link->entries = link->in_place;
    link->entries_capacity = ENTRIES_INLINE;
    return f->links_count++;
}

LhFlows *
lh_flows_new(const LhNetwork *network, LhNetworkModel model, LhHeap *heap, uint32_t heap_first)
{
    LhFlows *f = g_new0(LhFlows, 1);

    f->model = model;
    f->heap = heap;
    f->heap_first = heap_first;
    f->epoch = 1;
    f->next_arrival = LH_TIME_NEVER;
    f->pairs_first = network->links_count;
    reserve_links(f, network->links_count);
    for (uint32_t i = 0; i < network->links_count; i++)
        f->links[add_link(f)].capacity = lh_network_link(network, i).bandwidth_bytes_per_s;
    return f;
}

void
lh_flows_free(LhFlows *f)
{
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->links_count; i++)
        if (f->links[i].entries != f->links[i].in_place)
            g_free(f->links[i].entries);
    for (uint32_t i = 0; i < f->lines_count; i++) {
        g_free(f->lines[i].times);
        g_free(f->lines[i].flows);
    }
    g_free(f->lines);
    g_aligned_free(f->links);
    g_free(f->flows);
    g_free(f->set.items);
    g_free(f->touched.items);
    g_free(f->pairs_free.items);
    g_free(f->free.items);
    g_free(f->retired.items);
    g_free(f->shares);
    g_free(f);
}

static inline bool
in_set(const LhFlows *f, const Flow *flow)
{
    return flow->epoch == f->epoch;
}

static inline bool
is_tight(const Link *link)
{
    return link->demand > link->capacity * (1 + 1e-12);
}

/* Of a flow on the network: its pair's, if that has one. */
static inline uint32_t
last_link(const Flow *flow)
{
    return flow->links[flow->links_count - 1];
}

static inline void
touch(LhFlows *f, uint32_t id)
{
    if (f->links[id].epoch == f->epoch)
        return;
    f->links[id].epoch = f->epoch;
    push(&f->touched, id);
}

static void
set_add(LhFlows *f, uint32_t index)
{
    Flow *flow = &f->flows[index];

    if (in_set(f, flow))
        return;
    flow->epoch = f->epoch;
    flow->next_rate = flow->rate;
    flow->next_bottleneck = flow->bottleneck;
    push(&f->set, index);
    touch(f, flow->narrowest);
    for (uint32_t hop = 0; hop < flow->links_count; hop++)
        if (is_tight(&f->links[flow->links[hop]]))
            touch(f, flow->links[hop]);
}

static void
grow_entries(Link *link)
{
    bool in_place = link->entries == link->in_place;
    uint32_t *entries = in_place ? NULL : link->entries;

    link->entries_capacity *= 2;
    entries = g_renew(uint32_t, entries, link->entries_capacity);
    if (in_place)
        memcpy(entries, link->in_place, sizeof(link->in_place));
    link->entries = entries;
}

static void
attach(LhFlows *f, uint32_t index)
{
    Flow *flow = &f->flows[index];

    for (uint32_t hop = 0; hop < flow->links_count; hop++) {
        Link *link = &f->links[flow->links[hop]];

        if (link->entries_count == link->entries_capacity)
            grow_entries(link);
        flow->positions[hop] = link->entries_count;
        link->entries[link->entries_count++] = index << HOP_BITS | hop;
        link->demand += flow->narrowest_rate;
    }
}

/*
 * A new flow wants its share of its tight links. Flows that are faster than an equal share will
 * hardly keep their rate: taking them along at once saves rounds (not needed for the result).
 * False: no link of its route is tight.
 */
static bool
claim(LhFlows *f, uint32_t index)
{
    const Flow *flow = &f->flows[index];
    bool claimed = false;

    for (uint32_t hop = 0; hop < flow->links_count; hop++) {
        const Link *link = &f->links[flow->links[hop]];

        if (!is_tight(link))
            continue;
        claimed = true;
        for (uint32_t i = 0; i < link->entries_count; i++) {
            uint32_t other = link->entries[i] >> HOP_BITS;

            if (f->flows[other].rate * link->entries_count > link->capacity)
                set_add(f, other);
        }
    }
    if (claimed)
        set_add(f, index);
    return claimed;
}

static bool
is_of_pair(const LhFlows *f, uint32_t id, const LhRoute *route)
{
    const Link *link = &f->links[id];

    return id >= f->pairs_first && link->pair.source == route->source &&
           link->pair.destination == route->destination;
}

/*
 * The link of the pair at the ends of @route. All messages of a pair cross the same links: if one
 * is under way, it is in the list of the first.
 */
static uint32_t
pair_link(LhFlows *f, const LhRoute *route)
{
    const Link *first = &f->links[route->links[0]];
    uint32_t id;

    for (uint32_t i = 0; i < first->entries_count; i++) {
        const Flow *other = &f->flows[first->entries[i] >> HOP_BITS];

        if (is_of_pair(f, last_link(other), route))
            return last_link(other);
    }
    if (f->pairs_free.count == 0 && f->links_count == f->links_capacity)
        reserve_links(f, f->pairs_first + MAX(64, 2 * (f->links_count - f->pairs_first)));
    id = f->pairs_free.count > 0 ? f->pairs_free.items[--f->pairs_free.count] : add_link(f);
    f->links[id].capacity = route->flow_bandwidth_bytes_per_s;
    f->links[id].pair.source = route->source;
    f->links[id].pair.destination = route->destination;
    return id;
}

/* Takes the flow off its links; the flows that those links held back join the set. */
static void
detach(LhFlows *f, uint32_t index)
{
    Flow *flow = &f->flows[index];

    for (uint32_t hop = 0; hop < flow->links_count; hop++) {
        uint32_t id = flow->links[hop];
        Link *link = &f->links[id];
        uint32_t last = link->entries[--link->entries_count];
        uint32_t position = flow->positions[hop];
        bool tight = is_tight(link);

        link->entries[position] = last;
        f->flows[last >> HOP_BITS].positions[last & ((1 << HOP_BITS) - 1)] = position;
        link->demand = link->entries_count == 0 ? 0 : link->demand - flow->narrowest_rate;
        for (uint32_t i = 0; tight && i < link->entries_count; i++) {
            uint32_t other = link->entries[i] >> HOP_BITS;

            if (f->flows[other].bottleneck == id)
                set_add(f, other);
        }
    }
    if (last_link(flow) >= f->pairs_first && f->links[last_link(flow)].entries_count == 0)
        push(&f->pairs_free, last_link(flow));
    flow->links_count = 0;
}

static uint32_t
take_index(LhFlows *f)
{
    if (f->free.count > 0)
        return f->free.items[--f->free.count];
    if (f->flows_count == f->flows_capacity) {
        f->flows_capacity = MAX(64, f->flows_capacity * 2);
        f->flows = g_renew(Flow, f->flows, f->flows_capacity);
    }
    lh_heap_reserve(f->heap, f->heap_first + f->flows_count + 1);
    f->flows[f->flows_count].epoch = 0;
    return f->flows_count++;
}

static LhTime
transfer_ps(double bytes, double rate)
{
    return lh_time_from_ps(bytes / rate * (double)LH_PS_PER_S);
}

/* Without sharing, a message's end is known when it starts. */
static LhTime
unshared_finish(LhFlows *f, LhTime now, const LhRoute *route, uint64_t bytes)
{
    double narrowest =
        route->flow_bandwidth_bytes_per_s > 0 ? route->flow_bandwidth_bytes_per_s : INFINITY;
    LhTime start = now;

    for (uint32_t i = 0; i < route->links_count; i++) {
        const Link *link = &f->links[route->links[i]];

        narrowest = MIN(narrowest, link->capacity);
        if (f->model == LH_NETWORK_FIFO)
            start = MAX(start, link->free_ps);
    }
    /* Later than any run: what queues behind it needs no better time. */
    start = MIN(start, 2 * LH_TIME_LONGEST) + transfer_ps((double)bytes, narrowest);
    for (uint32_t i = 0; i < route->links_count; i++)
        f->links[route->links[i]].free_ps = start;
    return start;
}

/* One more link for a new flow: that of its pair. */
static void
limit_pair(LhFlows *f, Flow *flow, const LhRoute *route)
{
    const uint32_t id = pair_link(f, route);

    flow->links[flow->links_count++] = id;
    if (route->flow_bandwidth_bytes_per_s < flow->narrowest_rate) {
        flow->narrowest = id;
        flow->narrowest_rate = route->flow_bandwidth_bytes_per_s;
    }
}

uint32_t
lh_flows_start(LhFlows *f, LhTime now, const LhRoute *route, uint64_t bytes)
{
    uint32_t index = take_index(f);
    Flow *flow = &f->flows[index];

    flow->rate = 0;
    flow->bottleneck = NO_LINK;
    flow->latency_ps = route->latency_ps;
    flow->remaining_bytes = (double)bytes;
    flow->updated_ps = now;
    flow->links_count = 0;
    lh_flows_count(f, route, bytes);
    if (f->model != LH_NETWORK_FAIR || bytes == 0) {
        flow->finish_ps = bytes == 0 ? now : unshared_finish(f, now, route, bytes);
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
        return index;
    }
    flow->finish_ps = LH_TIME_NEVER;
    flow->links_count = (uint8_t)route->links_count;
    flow->narrowest_rate = INFINITY;
    for (uint32_t i = 0; i < route->links_count; i++) {
        flow->links[i] = route->links[i];
        if (f->links[flow->links[i]].capacity < flow->narrowest_rate) {
            flow->narrowest = flow->links[i];
            flow->narrowest_rate = f->links[flow->links[i]].capacity;
        }
    }
    if (route->flow_bandwidth_bytes_per_s > 0)
        limit_pair(f, flow, route);
    attach(f, index);
    if (!claim(f, index)) {
        flow->rate = flow->narrowest_rate;
        flow->bottleneck = flow->narrowest;
        flow->finish_ps = now + transfer_ps((double)bytes, flow->rate);
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
    }
    return index;
}

void
lh_flows_release(LhFlows *f, uint32_t index)
{
    push(&f->retired, index);
}

static bool
share_before(Share a, Share b)
{
    return a.share < b.share || (a.share == b.share && a.link < b.link);
}

static void
shares_push(LhFlows *f, Share s)
{
    uint32_t i = f->shares_count++;

    if (f->shares_count > f->shares_capacity) {
        f->shares_capacity = MAX(64, f->shares_capacity * 2);
        f->shares = g_renew(Share, f->shares, f->shares_capacity);
    }
    for (; i > 0 && share_before(s, f->shares[(i - 1) / 2]); i = (i - 1) / 2)
        f->shares[i] = f->shares[(i - 1) / 2];
    f->shares[i] = s;
}

static Share
shares_pop(LhFlows *f)
{
    Share least = f->shares[0], last = f->shares[--f->shares_count];
    uint32_t i = 0;

    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= f->shares_count)
            break;
        if (child + 1 < f->shares_count && share_before(f->shares[child + 1], f->shares[child]))
            child++;
        if (!share_before(f->shares[child], last))
            break;
        f->shares[i] = f->shares[child];
        i = child;
    }
    f->shares[i] = last;
    return least;
}

/* What every touched link can give to the set, the flows outside it keeping their rates. */
static void
offer(LhFlows *f)
{
    for (uint32_t t = 0; t < f->touched.count; t++) {
        Link *link = &f->links[f->touched.items[t]];

        link->residual = link->capacity;
        link->open = 0;
        for (uint32_t i = 0; i < link->entries_count; i++) {
            const Flow *flow = &f->flows[link->entries[i] >> HOP_BITS];

            if (in_set(f, flow))
                link->open++;
            else
                link->residual -= flow->rate;
        }
        link->residual = MAX(link->residual, 0);
        if (link->open > 0)
            shares_push(f, (Share){ link->residual / link->open, f->touched.items[t], link->open });
    }
    for (uint32_t s = 0; s < f->set.count; s++)
        f->flows[f->set.items[s]].next_rate = -1;
}

/* Gives @share to every flow of the set that still waits on @id, and takes it off their other
 * links. */
static void
fix_link(LhFlows *f, uint32_t id, double share)
{
    const Link *link = &f->links[id];

    for (uint32_t i = 0; i < link->entries_count; i++) {
        Flow *flow = &f->flows[link->entries[i] >> HOP_BITS];

        if (!in_set(f, flow) || flow->next_rate >= 0)
            continue;
        flow->next_rate = share;
        flow->next_bottleneck = id;
        for (uint32_t hop = 0; hop < flow->links_count; hop++) {
            Link *other = &f->links[flow->links[hop]];

            if (other->epoch != f->epoch)
                continue;
            other->residual = MAX(other->residual - share, 0);
            other->open--;
        }
    }
}

/* Progressive filling: the link with the least share is full first. Shares only grow, so a stale
 * one goes back. */
static void
fill(LhFlows *f)
{
    offer(f);
    while (f->shares_count > 0) {
        Share s = shares_pop(f);
        const Link *link = &f->links[s.link];

        if (link->open == 0)
            continue;
        if (link->open != s.open)
            shares_push(f, (Share){ link->residual / link->open, s.link, link->open });
        else
            fix_link(f, s.link, s.share);
    }
}

/* Flows outside the set that are faster than @rate on @link hold back a flow of the set: they join
 * it. */
static void
add_faster(LhFlows *f, const Link *link, double rate)
{
    for (uint32_t i = 0; i < link->entries_count; i++) {
        uint32_t index = link->entries[i] >> HOP_BITS;

        if (f->flows[index].rate > rate * (1 + RELATIVE_SLACK))
            set_add(f, index);
    }
}

/* Every flow limited by this link must still be: the link full, and nobody on it faster. */
static void
check_link(LhFlows *f, uint32_t id)
{
    const Link *link = &f->links[id];
    double load = 0, fastest = 0;
    bool full;

    for (uint32_t i = 0; i < link->entries_count; i++) {
        const Flow *flow = &f->flows[link->entries[i] >> HOP_BITS];
        double rate = in_set(f, flow) ? flow->next_rate : flow->rate;

        load += rate;
        fastest = MAX(fastest, rate);
    }
    full = load >= link->capacity * (1 - RELATIVE_SLACK);
    for (uint32_t i = 0; i < link->entries_count; i++) {
        uint32_t index = link->entries[i] >> HOP_BITS;
        const Flow *flow = &f->flows[index];
        bool member = in_set(f, flow);
        double rate = member ? flow->next_rate : flow->rate;

        if ((member ? flow->next_bottleneck : flow->bottleneck) != id || rate < 0)
            continue;
        if (full && rate >= fastest * (1 - RELATIVE_SLACK))
            continue;
        if (member)
            add_faster(f, link, rate);
        else
            set_add(f, index);
    }
}

static void
set_rate(LhFlows *f, uint32_t index, LhTime now)
{
    Flow *flow = &f->flows[index];
    double before = flow->rate;
    LhTime key = flow->finish_ps;

    flow->bottleneck = flow->next_bottleneck;
    if (fabs(flow->next_rate - before) <= 1e-12 * before)
        return;
    flow->remaining_bytes -= before * ((double)(now - flow->updated_ps) * S_PER_PS);
    flow->remaining_bytes = MAX(flow->remaining_bytes, 0);
    flow->updated_ps = now;
    flow->rate = flow->next_rate;
    flow->finish_ps = now + transfer_ps(flow->remaining_bytes, flow->rate);
    /* A flow that slows down keeps its early key: its event finds that it is not due and re-keys.
     */
    if (flow->finish_ps < key || before == 0)
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
}

void
lh_flows_settle(LhFlows *f, LhTime now)
{
    if (f->set.count > 0) {
        uint32_t solved = 0;

        while (solved < f->set.count) {
            uint32_t touched = f->touched.count;

            solved = f->set.count;
            fill(f);
            for (uint32_t t = 0; t < touched; t++)
                check_link(f, f->touched.items[t]);
        }
        for (uint32_t s = 0; s < f->set.count; s++)
            if (f->flows[f->set.items[s]].links_count > 0)
                set_rate(f, f->set.items[s], now);
        f->set.count = 0;
        f->touched.count = 0;
        f->epoch++;
    }
    while (f->retired.count > 0)
        push(&f->free, f->retired.items[--f->retired.count]);
}

#define DELAY_LINE_MIN 64 /* a power of two */

static DelayLine *
delay_line(LhFlows *f, LhTime latency_ps)
{
    for (uint32_t i = 0; i < f->lines_count; i++)
        if (f->lines[i].latency_ps == latency_ps)
            return &f->lines[i];
    f->lines = g_renew(DelayLine, f->lines, f->lines_count + 1);
    f->lines[f->lines_count] = (DelayLine){ .latency_ps = latency_ps,
                                            .times = g_new(LhTime, DELAY_LINE_MIN),
                                            .flows = g_new(uint32_t, DELAY_LINE_MIN),
                                            .mask = DELAY_LINE_MIN - 1 };
    return &f->lines[f->lines_count++];
}

static void
delay_line_grow(DelayLine *line)
{
    uint32_t capacity = 2 * (line->mask + 1);
    LhTime *times = g_new(LhTime, capacity);
    uint32_t *flows = g_new(uint32_t, capacity);

    for (uint32_t i = 0; i < line->count; i++) {
        times[i] = line->times[(line->first + i) & line->mask];
        flows[i] = line->flows[(line->first + i) & line->mask];
    }
    g_free(line->times);
    g_free(line->flows);
    line->times = times;
    line->flows = flows;
    line->first = 0;
    line->mask = capacity - 1;
}

bool
lh_flows_event(LhFlows *f, uint32_t index, LhTime now)
{
    Flow *flow = &f->flows[index];
    DelayLine *line;

    if (flow->finish_ps > now) {
        lh_heap_set(f->heap, f->heap_first + index, flow->finish_ps);
        return false;
    }
    if (flow->links_count > 0)
        detach(f, index);
    line = delay_line(f, flow->latency_ps);
    if (line->count > line->mask)
        delay_line_grow(line);
    line->times[(line->first + line->count) & line->mask] = now + flow->latency_ps;
    line->flows[(line->first + line->count) & line->mask] = index;
    line->count++;
    f->next_arrival = MIN(f->next_arrival, now + flow->latency_ps);
    return true;
}

/* Keeps next_arrival true; called when a line's first entry changes. */
static void
find_next_arrival(LhFlows *f)
{
    LhTime next = LH_TIME_NEVER;

    for (uint32_t i = 0; i < f->lines_count; i++)
        if (f->lines[i].count > 0)
            next = MIN(next, f->lines[i].times[f->lines[i].first & f->lines[i].mask]);
    f->next_arrival = next;
}

LhTime
lh_flows_next_arrival(const LhFlows *f)
{
    return f->next_arrival;
}

bool
lh_flows_arrive(LhFlows *f, LhTime now, uint32_t *index)
{
    for (uint32_t i = 0; now == f->next_arrival && i < f->lines_count; i++) {
        DelayLine *line = &f->lines[i];

        if (line->count == 0 || line->times[line->first & line->mask] != now)
            continue;
        *index = line->flows[line->first & line->mask];
        line->first++;
        line->count--;
        find_next_arrival(f);
        return true;
    }
    return false;
}

void
lh_flows_count(LhFlows *f, const LhRoute *route, uint64_t bytes)
{
    for (uint32_t i = 0; i < route->links_count; i++)
        f->links[route->links[i]].bytes += bytes;
}

uint64_t
lh_flows_link_bytes(const LhFlows *f, uint32_t id)
{
    return f->links[id].bytes;
}

double
lh_flows_rate(const LhFlows *f, uint32_t index)
{
    return f->flows[index].links_count > 0 ? f->flows[index].rate : 0;
}
