/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier's happens-before relation. Within a rank: vector clocks over its streams, from
 * stream order, `after` and sync. Across ranks: the graph of starts and ends of all ops. It is
 * acyclic if and only if no timing can deadlock; later stages follow its topological order. The
 * same graph with all streams of a rank in one queue tells whether the program needs a device that
 * runs its streams concurrently.
 */
#include "step/layer_info.h"
#include "verify/proof.h"
#include "verify/verify_private.h"

#include "step/step.h"

#include <string.h>

/* Raises the clock of an op to include @earlier, an op of the same rank, as complete. */
static void
join_op(const LhProof *proof, uint32_t *clock, uint32_t earlier)
{
    const uint32_t streams = proof->program->streams_count;
    const uint32_t *other = &proof->clocks[(size_t)earlier * streams];
    const LhOp *op = &proof->ops[earlier];

    for (uint32_t s = 0; s < streams; s++)
        clock[s] = MAX(clock[s], other[s]);
    if (lh_op_on_stream(op))
        clock[op->stream] = MAX(clock[op->stream], proof->position[earlier] + 1);
}

void
lh_clocks_begin(LhRankClocks *clocks)
{
    *clocks = (LhRankClocks){ 0 };
    memset(clocks->last, 0xff, sizeof(clocks->last)); /* LH_NONE */
}

void
lh_clocks_add(LhProof *proof, LhRankClocks *clocks, uint32_t rank, LhOpRange ops)
{
    const uint32_t streams = proof->program->streams_count;
    uint32_t *last = clocks->last, *issued = clocks->issued, *host = clocks->host;

    for (uint32_t g = ops.first; g < ops.end; g++) {
        const LhOp *op = &proof->ops[g];
        uint32_t *clock = &proof->clocks[(size_t)g * streams];

        memcpy(clock, host, streams * sizeof(uint32_t));
        for (uint32_t i = 0; i < op->after_count; i++)
            join_op(proof, clock, proof->rank_first[rank] + op->after[i]);
        if (op->kind == LH_OP_SYNC) {
            memcpy(host, issued, sizeof(clocks->host));
            memcpy(clock, issued, streams * sizeof(uint32_t));
        } else if (lh_op_on_stream(op)) {
            if (last[op->stream] != LH_NONE)
                join_op(proof, clock, last[op->stream]);
            last[op->stream] = g;
            proof->position[g] = issued[op->stream]++;
        }
    }
}

void
lh_proof_make_clocks(LhProof *proof)
{
    proof->clocks = g_new0(uint32_t, (size_t)proof->ops_count * proof->program->streams_count);
    proof->position = g_new0(uint32_t, proof->ops_count);
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        LhRankClocks clocks;

        lh_clocks_begin(&clocks);
        lh_clocks_add(proof, &clocks, rank, lh_proof_ops_of(proof, rank));
    }
}

bool
lh_proof_ordered(LhProof *proof, uint32_t earlier, uint32_t later)
{
    const uint32_t *clock = &proof->clocks[(size_t)later * proof->program->streams_count];

    proof->verdict->orders_checked++;
    return clock[proof->ops[earlier].stream] > proof->position[earlier];
}

typedef struct {
    uint32_t from, to;
} Edge;

static inline uint32_t
start_of(uint32_t op)
{
    return 2 * op;
}

static inline uint32_t
done_of(uint32_t op)
{
    return 2 * op + 1;
}

static void
add_edge(GArray *edges, uint32_t from, uint32_t to)
{
    const Edge edge = { from, to };

    g_array_append_val(edges, edge);
}

/* Adds what an op's end depends on besides its start: the other ends of its messages, or its
 * collective. */
static void
add_partners(const LhProof *proof, GArray *edges, uint32_t g)
{
    const LhOp *op = &proof->ops[g];

    if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            const uint32_t match = proof->part_match[op->exchange.parts_first + i];

            add_edge(edges, start_of(proof->part_op[match]), done_of(g));
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        const uint32_t hub = 2 * proof->ops_count + proof->op_meeting[g];

        add_edge(edges, start_of(g), hub);
        add_edge(edges, hub, done_of(g));
    }
}

/* The node of an op's issue, numbered after the collectives. Only programs that could fill a
 * host's window have these. */
static inline uint32_t
issue_of(const LhProof *proof, uint32_t op)
{
    return 2 * proof->ops_count + proof->meetings_count + op;
}

/* A host issues ops in order, and each op only when all but LH_HOST_WINDOW of those before it
 * are complete. */
static void
add_issue_edges(const LhProof *proof, GArray *edges, uint32_t rank)
{
    const uint32_t first = proof->rank_first[rank];

    for (uint32_t g = first; g < proof->rank_first[rank + 1]; g++) {
        if (g > first)
            add_edge(edges, issue_of(proof, g - 1), issue_of(proof, g));
        if (g - first > LH_HOST_WINDOW)
            add_edge(edges, done_of(g - LH_HOST_WINDOW - 1), issue_of(proof, g));
        add_edge(edges, issue_of(proof, g), start_of(g));
    }
}

static bool
may_fill_window(const LhProof *proof)
{
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        if (proof->rank_first[rank + 1] - proof->rank_first[rank] > LH_HOST_WINDOW)
            return true;
    }
    return false;
}

/*
 * Adds the edges of one rank. Streams are in order, so a sync needs edges only from the last op of
 * each stream and from the previous sync, and only the first op of a stream after a sync needs an
 * edge from it. @one_queue: all streams of the rank are one.
 */
static void
add_rank_edges(const LhProof *proof, GArray *edges, uint32_t rank, bool one_queue)
{
    const uint32_t streams = one_queue ? 1 : proof->program->streams_count;
    uint32_t last[LH_STREAMS_MAX];
    uint32_t sync = LH_NONE;

    memset(last, 0xff, sizeof(last));
    for (uint32_t g = proof->rank_first[rank]; g < proof->rank_first[rank + 1]; g++) {
        const LhOp *op = &proof->ops[g];
        uint32_t before = sync;

        add_edge(edges, start_of(g), done_of(g));
        for (uint32_t i = 0; i < op->after_count; i++)
            add_edge(edges, done_of(proof->rank_first[rank] + op->after[i]), start_of(g));
        if (lh_op_on_stream(op)) {
            const uint32_t s = one_queue ? 0 : op->stream;

            if (last[s] != LH_NONE && (sync == LH_NONE || last[s] > sync))
                before = last[s];
            last[s] = g;
            add_partners(proof, edges, g);
        } else if (op->kind == LH_OP_SYNC) {
            for (uint32_t s = 0; s < streams; s++) {
                if (last[s] != LH_NONE)
                    add_edge(edges, done_of(last[s]), done_of(g));
            }
            sync = g;
        }
        if (before != LH_NONE)
            add_edge(edges, done_of(before), start_of(g));
    }
}

/* Kahn's algorithm: fills @order and returns the number of nodes in it; @waits keeps the number
 * of remaining dependencies of the other nodes. */
static uint32_t
sort_nodes(const LhProof *proof, const GArray *edges, uint32_t *order, uint32_t *waits)
{
    const Edge *edge = &g_array_index(edges, Edge, 0);
    g_autofree uint32_t *first = g_new0(uint32_t, (size_t)proof->nodes_count + 1);
    g_autofree uint32_t *next = g_new(uint32_t, MAX(edges->len, 1));
    uint32_t head = 0, tail = 0;

    /* Successors of all nodes in one array, by counting sort. Filled from the back, so first[]
     * ends at the starts. */
    for (uint32_t i = 0; i < edges->len; i++) {
        first[edge[i].from]++;
        waits[edge[i].to]++;
    }
    for (uint32_t n = 0; n < proof->nodes_count; n++)
        first[n + 1] += first[n];
    for (uint32_t i = edges->len; i > 0; i--)
        next[--first[edge[i - 1].from]] = edge[i - 1].to;
    for (uint32_t n = 0; n < proof->nodes_count; n++) {
        if (waits[n] == 0)
            order[tail++] = n;
    }
    while (head < tail) {
        const uint32_t n = order[head++];

        for (uint32_t i = first[n]; i < first[n + 1]; i++) {
            if (--waits[next[i]] == 0)
                order[tail++] = next[i];
        }
    }
    return tail;
}

/* The op of a node. For a collective, the op through which the cycle enters it. For an issue
 * none: its op comes next. */
static uint32_t
op_of(const LhProof *proof, uint32_t node)
{
    return node < 2 * proof->ops_count ? node / 2 : LH_NONE;
}

/*
 * Finds a cycle among the nodes that Kahn's algorithm could not order, each element waiting for the
 * next. Walking against the edges from any of them stays among them, so it must return to a node.
 */
static GArray *
find_cycle(const LhProof *proof, const GArray *edges, const uint32_t *waits)
{
    g_autofree uint32_t *waits_for = g_new0(uint32_t, proof->nodes_count);
    g_autofree uint8_t *seen = g_new0(uint8_t, proof->nodes_count);
    GArray *cycle = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t n = 0, end;

    for (uint32_t i = edges->len; i > 0; i--) {
        const Edge *edge = &g_array_index(edges, Edge, i - 1);

        if (waits[edge->from] > 0 && waits[edge->to] > 0)
            waits_for[edge->to] = edge->from;
    }
    while (waits[n] == 0)
        n++;
    while (!seen[n]) {
        seen[n] = 1;
        n = waits_for[n];
    }
    end = n;
    do {
        const uint32_t op = op_of(proof, n);

        if (op != LH_NONE &&
            (cycle->len == 0 || g_array_index(cycle, uint32_t, cycle->len - 1) != op))
            g_array_append_val(cycle, op);
        n = waits_for[n];
    } while (n != end);
    if (cycle->len > 1 &&
        g_array_index(cycle, uint32_t, 0) == g_array_index(cycle, uint32_t, cycle->len - 1))
        g_array_set_size(cycle, cycle->len - 1);
    return cycle;
}

#define CYCLE_SHOWN 8

/* "waits for rank 0, op 3 (...), which waits for ...": a cycle from its smallest op on, and that
 * op. */
static char *
cycle_text(const LhProof *proof, const GArray *cycle, uint32_t *least)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const uint32_t count = cycle->len;

    g_assert(count > 0);
    *least = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (g_array_index(cycle, uint32_t, i) < g_array_index(cycle, uint32_t, *least))
            *least = i;
    }
    for (uint32_t i = 1; i <= count && i <= CYCLE_SHOWN; i++) {
        g_autofree char *name =
            lh_proof_rank_op_text(proof, g_array_index(cycle, uint32_t, (*least + i) % count));

        g_string_append_printf(text, "%s %s", i == 1 ? "waits for" : ", which waits for", name);
    }
    if (count > CYCLE_SHOWN)
        g_string_append_printf(text, ", and so on through %u more ops back to the first",
                               count - CYCLE_SHOWN);
    return g_strdup(text->str);
}

static LhFindingPlace
place_in(const LhProof *proof, const GArray *cycle, uint32_t least)
{
    const uint32_t op = g_array_index(cycle, uint32_t, least);

    return (LhFindingPlace){ proof->op_rank[op], op, -1,
                             g_array_index(cycle, uint32_t, (least + 1) % cycle->len) };
}

static void
find_deadlock(LhProof *proof, const GArray *edges, const uint32_t *waits)
{
    g_autoptr(GArray) cycle = find_cycle(proof, edges, waits);
    uint32_t least;
    g_autofree char *text = cycle_text(proof, cycle, &least);

    lh_proof_find(proof, LH_FINDING_DEADLOCK, place_in(proof, cycle, least),
                  "%s: a cycle, so none ever ends", text);
}

/* The edges of all ranks. */
static GArray *
list_edges(const LhProof *proof, bool one_queue)
{
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    const bool windows = may_fill_window(proof);

    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        add_rank_edges(proof, edges, rank, one_queue);
        if (windows)
            add_issue_edges(proof, edges, rank);
    }
    return edges;
}

/*
 * Sorts the program with all streams of each rank in one queue. A program that ends this way also
 * ends with concurrent streams, whose order is a subset of the queue's.
 */
static bool
order_one_queue(LhProof *proof)
{
    g_autoptr(GArray) edges = list_edges(proof, true);
    g_autofree uint32_t *waits = g_new0(uint32_t, MAX(proof->nodes_count, 1));
    g_autoptr(GArray) cycle = NULL;
    g_autofree char *first = NULL;
    g_autofree char *text = NULL;
    uint32_t least;

    if (sort_nodes(proof, edges, proof->order, waits) == proof->nodes_count)
        return true;
    cycle = find_cycle(proof, edges, waits);
    text = cycle_text(proof, cycle, &least);
    first = lh_proof_rank_op_text(proof, g_array_index(cycle, uint32_t, least));
    proof->verdict->queue_cycle = g_strconcat(first, " ", text, NULL);
    return false;
}

void
lh_proof_check_deadlock(LhProof *proof)
{
    g_autoptr(GArray) edges = NULL;
    g_autofree uint32_t *waits = NULL;

    proof->nodes_count = 2 * proof->ops_count + proof->meetings_count;
    if (may_fill_window(proof))
        proof->nodes_count += proof->ops_count;
    proof->order = g_new(uint32_t, MAX(proof->nodes_count, 1));
    proof->verdict->one_queue = order_one_queue(proof);
    if (proof->verdict->one_queue)
        return;
    edges = list_edges(proof, false);
    waits = g_new0(uint32_t, MAX(proof->nodes_count, 1));
    if (sort_nodes(proof, edges, proof->order, waits) < proof->nodes_count)
        find_deadlock(proof, edges, waits);
}

/*
 * Adds launch edges of a step. Kernels of communicators of different dimensions may not run
 * concurrently on a device: one may hold resources another one needs. So each communication op must
 * be able to end before the rank's next one of another dimension starts. Within one dimension the
 * program's own concurrency counts: attention's exchanges do run concurrently. A program that ends
 * in one queue has one op at a time anyway.
 */
static void
add_launch_edges(const LhProof *proof, GArray *edges, uint32_t rank)
{
    uint32_t next[LH_DIMENSIONS];

    /* Walking backwards: the next op of any other dimension. */
    for (uint32_t d = 0; d < LH_DIMENSIONS; d++)
        next[d] = LH_NONE;
    for (uint32_t g = proof->rank_first[rank + 1]; g-- > proof->rank_first[rank];) {
        const LhDimension d = lh_step_dimension(&proof->ops[g]);

        if (d == LH_DIMENSIONS)
            continue;
        if (next[d] != LH_NONE)
            add_edge(edges, done_of(g), start_of(next[d]));
        for (uint32_t other = 0; other < LH_DIMENSIONS; other++) {
            if (other != (uint32_t)d)
                next[other] = g;
        }
    }
}

/* "tensor and data": the dimensions of a cycle's ops. Caller frees. */
static char *
dimensions_text(const LhProof *proof, const GArray *cycle)
{
    static const char *const names[LH_DIMENSIONS] = {
        [LH_DIMENSION_TENSOR] = "tensor",
        [LH_DIMENSION_CONTEXT] = "context",
        [LH_DIMENSION_DATA] = "data",
        [LH_DIMENSION_PIPELINE] = "pipeline",
    };
    g_autoptr(GString) text = g_string_new(NULL);
    uint32_t seen = 0;

    for (guint i = 0; i < cycle->len; i++) {
        const LhDimension d = lh_step_dimension(&proof->ops[g_array_index(cycle, uint32_t, i)]);

        if (d < LH_DIMENSIONS)
            seen |= UINT32_C(1) << d;
    }
    for (uint32_t d = 0; d < LH_DIMENSIONS; d++) {
        if ((seen >> d & 1) != 0)
            g_string_append_printf(text, "%s%s", text->len > 0 ? " and " : "", names[d]);
    }
    return g_strdup(text->str);
}

void
lh_proof_check_launches(LhProof *proof)
{
    g_autoptr(GArray) edges = NULL;
    g_autofree uint32_t *waits = NULL;
    g_autofree uint32_t *order = NULL;

    if (proof->verdict->one_queue)
        return;
    edges = list_edges(proof, false);
    waits = g_new0(uint32_t, MAX(proof->nodes_count, 1));
    order = g_new(uint32_t, MAX(proof->nodes_count, 1));
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        add_launch_edges(proof, edges, rank);
    if (sort_nodes(proof, edges, order, waits) < proof->nodes_count) {
        g_autoptr(GArray) cycle = find_cycle(proof, edges, waits);
        g_autofree char *names = dimensions_text(proof, cycle);
        uint32_t least;
        g_autofree char *text = cycle_text(proof, cycle, &least);

        lh_proof_find(
            proof, LH_FINDING_DEADLOCK, place_in(proof, cycle, least),
            "%s: ends only if the device runs communication of %s parallelism concurrently", text,
            names);
    }
}
