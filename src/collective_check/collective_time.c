/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated program calls the operation once on every member of the group, at the same time.
 * Hosts take no time, since nccl-tests issues ahead.
 */
#include "collective_check/collective_time.h"

#include "base/error.h"
#include "measure/microbenchmarks.h"
#include "program/emit.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/collectives/nccl_measured.h"

#include <string.h>

/* nccl-tests rounds all-gathers and reduce-scatters to 16 bytes and all-to-alls to elements of 4
 * bytes per rank. */
const LhNcclTestOp lh_nccl_test_ops[] = {
    { "all_reduce", "all-reduce", "All ranks get the sum of all vectors.", LH_COLL_ALL_REDUCE, 0 },
    { "all_gather", "all-gather", "All ranks get the parts of all ranks.", LH_COLL_ALL_GATHER, 16 },
    { "reduce_scatter", "reduce-scatter", "Each rank gets its part of the sum.",
      LH_COLL_REDUCE_SCATTER, 16 },
    { "alltoall", "all-to-all", "Each rank sends a part of its vector to every rank.",
      LH_COLL_ALL_TO_ALL, 4 },
    { "broadcast", "broadcast", "All ranks get the vector of one rank.", LH_COLL_BROADCAST, 0 },
    { "sendrecv", NULL, "Each rank sends its vector to the next.", LH_NCCL_TEST_SENDS, 0 },
    { .name = NULL },
};

const char *const lh_nccl_test_op_names[] = { "all_reduce", "all_gather", "reduce_scatter",
                                              "alltoall",   "broadcast",  "sendrecv",
                                              NULL };

/* ---- operations ---- */

static bool
is_called(const LhNcclTestOp *op, const char *name)
{
    const gsize length = strlen(op->name);

    return g_strcmp0(name, op->own) == 0 ||
           (strncmp(name, op->name, length) == 0 &&
            (name[length] == '\0' || strcmp(name + length, "_perf") == 0));
}

const LhNcclTestOp *
lh_nccl_test_op_find(const char *name, GError **error)
{
    const char *names[2 * G_N_ELEMENTS(lh_nccl_test_ops)];
    g_autoptr(GString) all = g_string_new(NULL);
    g_autofree char *shown = g_strescape(name, NULL);
    const char *near;
    guint count = 0;

    for (const LhNcclTestOp *op = lh_nccl_test_ops; op->name != NULL; op++) {
        if (is_called(op, name))
            return op;
        g_string_append_printf(all, "%s%s", all->len > 0 ? ", " : "", op->name);
        names[count++] = op->name;
        if (op->own != NULL)
            names[count++] = op->own;
    }
    names[count] = NULL;
    near = lh_nearest_word(name, names);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "unknown operation \"%.60s\"; known, by nccl-tests' names: %s%s%s%s", shown,
                all->str, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                near != NULL ? "?" : "");
    return NULL;
}

double
lh_nccl_test_bus_share(const LhNcclTestOp *op, uint64_t ranks)
{
    const double n = (double)ranks;

    switch (op->kind) {
    case LH_COLL_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case LH_COLL_ALL_GATHER:
    case LH_COLL_REDUCE_SCATTER:
    case LH_COLL_ALL_TO_ALL:
        return (n - 1) / n;
    default:
        return 1;
    }
}

uint64_t
lh_nccl_test_bytes(const LhNcclTestOp *op, uint64_t ranks, uint64_t bytes)
{
    return op->grain_bytes == 0 ? bytes
                                : bytes / (op->grain_bytes * ranks) * op->grain_bytes * ranks;
}

/* What is whole goes to all, or to the next one; else each rank has its part. */
static bool
goes_whole(const LhNcclTestOp *op)
{
    return op->kind == LH_NCCL_TEST_SENDS || op->kind == LH_COLL_BROADCAST;
}

static uint64_t
part_bytes(const LhNcclTest *s, uint64_t bytes)
{
    return goes_whole(s->op) ? bytes : (bytes + s->ranks - 1) / s->ranks;
}

/* ---- the program ---- */

enum { GIVEN, GOTTEN }; /* slots */

static uint32_t
single_steps(const LhProgram *program, uint32_t rank)
{
    const LhNcclTest *s = program->plan;

    return lh_group_position(&s->group, rank) == UINT32_MAX ? 0 : 1;
}

static void
emit_sends(LhEmitter *e, const LhNcclTest *s)
{
    const uint64_t at = lh_group_position(&s->group, e->rank);

    lh_emit_exchange(e, 0);
    lh_microbenchmark_emit_message(
        e, true, (uint32_t)lh_group_member(&s->group, (at + 1) % s->ranks), GIVEN);
    lh_microbenchmark_emit_message(
        e, false, (uint32_t)lh_group_member(&s->group, (at + s->ranks - 1) % s->ranks), GOTTEN);
}

static void
emit_single(LhEmitter *e, uint32_t step)
{
    const LhNcclTest *s = e->program->plan;
    const LhSlot *slots = e->program->slots;

    (void)step;
    if (s->op->kind == LH_NCCL_TEST_SENDS) {
        emit_sends(e, s);
        return;
    }
    lh_emit_collective(e, 0, (LhCollectiveKind)s->op->kind, s->group);
    lh_emit_tensor(e, (LhRegion){ .slot = GIVEN, .count = slots[GIVEN].parts },
                   (LhRegion){ .slot = GOTTEN, .count = slots[GOTTEN].parts });
}

static const LhGenerator single_generator = { .steps = single_steps, .emit = emit_single };

static LhProgram *
program_of_single(const LhNcclTest *s, uint64_t bytes)
{
    LhProgram *program =
        lh_microbenchmark_new(&single_generator, s->setup->network.ranks, (void *)(uintptr_t)s);
    const uint32_t parts = (uint32_t)s->ranks;
    const int kind = s->op->kind;
    const bool whole = goes_whole(s->op);

    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    lh_microbenchmark_add_slot(program, "given", LH_SLOT_INPUT,
                               whole || kind == LH_COLL_ALL_GATHER ? 1 : parts,
                               part_bytes(s, bytes));
    lh_microbenchmark_add_slot(program, "gotten", LH_SLOT_OUTPUT,
                               whole || kind == LH_COLL_REDUCE_SCATTER ? 1 : parts,
                               part_bytes(s, bytes));
    return program;
}

/* ---- the cluster ---- */

/* Units that ranks are placed on: nodes, or hosts. */
typedef struct {
    const char *word;
    uint64_t ranks;
    uint32_t gpus, count;
} Boxes;

static Boxes
boxes_of(const LhNetwork *n, LhNcclTestPlace place)
{
    if (place.per_host > 0 && n->hosts_per_node > 1)
        return (Boxes){ "host", place.per_host, n->gpus_per_host, n->nodes * n->hosts_per_node };
    return (Boxes){ "node", MAX(place.per_node, place.per_host), n->gpus_per_node, n->nodes };
}

/* Checks that the ranks per unit fit, and that the ranks fill whole units. */
static bool
check_boxes(const LhNcclTest *s, Boxes boxes, GError **error)
{
    const char *name = s->setup->topology->name;

    if (boxes.ranks > boxes.gpus)
        return lh_scenario_error(s->setup->scenario, "cluster", error,
                                 "%" G_GUINT64_FORMAT " ranks per %s; %s has %u GPUs in each",
                                 boxes.ranks, boxes.word, name, boxes.gpus);
    if (s->ranks % boxes.ranks != 0 || s->ranks / boxes.ranks > boxes.count)
        return lh_scenario_error(s->setup->scenario, "cluster", error,
                                 "%" G_GUINT64_FORMAT " ranks, %" G_GUINT64_FORMAT
                                 " per %s, on %u %ss; allowed: a multiple of the ranks per "
                                 "%s, up to %" G_GUINT64_FORMAT,
                                 s->ranks, boxes.ranks, boxes.word, boxes.count, boxes.word,
                                 boxes.word, boxes.ranks * boxes.count);
    return true;
}

static bool
check_ranks(const LhNcclTest *s, GError **error)
{
    const LhNetwork *n = &s->setup->network;

    if (s->ranks >= 2 && s->ranks <= MIN(n->ranks, LH_NCCL_TEST_MEMBERS_MAX))
        return true;
    return lh_scenario_error(
        s->setup->scenario, "cluster", error,
        "%" G_GUINT64_FORMAT " rank%s on %u node%s of %u GPU%s; allowed: from 2 to "
        "one per GPU, at most %d",
        s->ranks, s->ranks == 1 ? "" : "s", n->nodes, n->nodes == 1 ? "" : "s", n->gpus_per_node,
        n->gpus_per_node == 1 ? "" : "s", LH_NCCL_TEST_MEMBERS_MAX);
}

static bool
place_ranks(LhNcclTest *s, LhNcclTestPlace place, GError **error)
{
    const LhNetwork *n = &s->setup->network;
    const Boxes boxes = boxes_of(n, place);

    s->ranks = place.ranks;
    if (boxes.ranks == 0) {
        s->ranks = place.ranks > 0 ? place.ranks : n->ranks;
        s->nodes = (s->ranks + n->gpus_per_node - 1) / n->gpus_per_node;
        s->group = (LhGroup){ 0, 1, (uint32_t)s->ranks, 0, 1 };
        return check_ranks(s, error);
    }
    if (s->ranks == 0)
        s->ranks = boxes.ranks * boxes.count;
    if (!check_boxes(s, boxes, error) || !check_ranks(s, error))
        return false;
    s->group =
        (LhGroup){ 0, 1, (uint32_t)boxes.ranks, boxes.gpus, (uint32_t)(s->ranks / boxes.ranks) };
    if (boxes.ranks == boxes.gpus && n->hosts_per_node > 1)
        s->group = (LhGroup){ 0, 1, (uint32_t)s->ranks, 0, 1 };
    s->nodes = lh_group_member(&s->group, s->ranks - 1) / n->gpus_per_node + 1;
    return true;
}

LhNcclTest *
lh_nccl_test_new(const LhScenario *scenario, const LhNcclTestOp *op, LhNcclTestPlace place,
                 GError **error)
{
    g_autoptr(LhNcclTest) s = g_new0(LhNcclTest, 1);

    s->op = op;
    s->setup = lh_setup_new_cluster(scenario, error);
    if (s->setup == NULL || !place_ranks(s, place, error))
        return NULL;
    return g_steal_pointer(&s);
}

void
lh_nccl_test_free(LhNcclTest *single)
{
    if (single == NULL)
        return;
    lh_setup_free(single->setup);
    g_free(single);
}

/* ---- times ---- */

/* Whether the times are those of the topology file, if it has any. */
static bool
is_native(const LhNcclTest *s)
{
    return s->op->kind != LH_NCCL_TEST_SENDS && (s->setup->collectives == LH_COLLECTIVES_NCCL ||
                                                 s->setup->collectives == LH_COLLECTIVES_AUTO);
}

static double
native_error(LhNcclMeasured *native, LhCollectiveKind kind, uint64_t ranks, uint64_t bytes)
{
    return lh_nccl_measured_error(native, kind,
                                  (double)bytes / lh_collective_printed_bytes(kind, ranks, 1));
}

static void
judge_single(const LhNcclTest *s, uint64_t bytes, LhNcclTestTime *time)
{
    LhNcclMeasured *native;

    time->source = LH_TIMES_MODELLED;
    time->error = lh_modelled_error((double)bytes);
    if (!is_native(s))
        return;
    native = lh_nccl_measured_new(&s->setup->network, s->setup->device, &s->group);
    time->source = lh_nccl_measured_source(native, (LhCollectiveKind)s->op->kind);
    time->error = native_error(native, (LhCollectiveKind)s->op->kind, s->ranks, bytes);
    lh_nccl_measured_free(native);
}

bool
lh_nccl_test_seconds(const LhNcclTest *s, const LhNetwork *network, uint64_t bytes, double *seconds,
                     GError **error)
{
    g_autoptr(LhProgram) program = program_of_single(s, bytes);
    const LhSimParams params = { .program = program,
                                 .network = network,
                                 .device = s->setup->device,
                                 .network_model = s->setup->network_model,
                                 .collectives = s->setup->collectives };
    g_autoptr(LhSimResult) result = lh_simulate(&params, error);

    if (result == NULL)
        return false;
    *seconds = (double)result->makespan_ps / (double)LH_PS_PER_S;
    return true;
}

bool
lh_nccl_test_time(const LhNcclTest *s, uint64_t bytes, LhNcclTestTime *time, GError **error)
{
    if (!lh_nccl_test_seconds(s, &s->setup->network, bytes, &time->seconds, error))
        return false;
    judge_single(s, bytes, time);
    return true;
}

static LhLinkAlgorithm
algorithm_of_single(const LhNcclTest *s)
{
    LhLinkAlgorithm algorithm = LH_ALGORITHM_DEFAULT;
    LhNcclMeasured *native;

    if (!is_native(s))
        return algorithm;
    native = lh_nccl_measured_new(&s->setup->network, s->setup->device, &s->group);
    algorithm = lh_nccl_measured_algorithm(native, (LhCollectiveKind)s->op->kind);
    lh_nccl_measured_free(native);
    return algorithm;
}

GArray *
lh_nccl_test_loads(const LhNcclTest *s)
{
    return s->op->kind == LH_NCCL_TEST_SENDS
               ? lh_link_loads_of_sends(&s->setup->network, &s->group)
               : lh_link_loads(&s->setup->network, &s->group, (LhCollectiveKind)s->op->kind,
                               algorithm_of_single(s));
}

bool
lh_nccl_test_is_nvls(const LhNcclTest *s)
{
    return s->op->kind == LH_COLL_ALL_REDUCE && algorithm_of_single(s) == LH_ALGORITHM_NVLS;
}
