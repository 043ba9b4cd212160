/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folding: a folded step has the results of the same step simulated rank by rank, to the
 * picosecond, on every network that permits folding; a step whose ranks differ is not folded.
 */
#include "critical_path/critical.h"
#include "scenario/step/setup_step.h"
#include "share.h"
#include "step_results.h"

#include <glib/gstdio.h>

#define CRITICAL 10 /* one case in this many is also searched for its critical path */
#define SHARING 8   /* one case in this many is also simulated with cores shared by ranks */

/* Asserts that the critical path spans the whole run. */
static void
check_path(const LhSimResult *r)
{
    LhTime end_ps = 0;

    for (guint i = 0; i < r->path->len; i++) {
        const LhPathStep *step = &g_array_index(r->path, LhPathStep, i);

        ck_assert_int_eq(step->from_ps, end_ps);
        end_ps = step->to_ps;
    }
    ck_assert_int_eq(end_ps, r->makespan_ps);
}

/* ---- dependence graphs ---- */

/* What the graph of a run says of its ops. */
typedef struct {
    const LhSlackGraph *graph;
    GHashTable *slacks;     /* rank << 32 | op -> LhTime */
    uint64_t ops, no_slack; /* with those that they stand for */
} OpSlacks;

static void
take_slack(void *data, const LhEvent *event, LhTime slack_ps)
{
    OpSlacks *of = data;
    const uint32_t weight = lh_slack_weight(of->graph, event->rank);
    const gint64 key = (gint64)((uint64_t)event->rank << 32 | event->op);

    if (event->end != LH_EVENT_DONE)
        return;
    of->ops += weight;
    of->no_slack += slack_ps == 0 ? weight : 0;
    g_hash_table_insert(of->slacks, g_memdup2(&key, sizeof(key)),
                        g_memdup2(&slack_ps, sizeof(slack_ps)));
}

static OpSlacks
slacks_of(const LhSlackGraph *graph)
{
    OpSlacks of = { graph, g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free), 0,
                    0 };

    lh_slack_of(graph, take_slack, &of);
    return of;
}

static double
some_shorter(void *data, const LhEvent *event)
{
    const uint32_t nth = *(const uint32_t *)data;

    return event->kind != LH_STEP_HOST && event->op % nth == 0 ? 0.5 : 1;
}

/* With closed forms only: a hop waits for what its sender has done by then, and the order within an
 * instant is not that of the whole run. */
static void
check_replays(const char *members, const LhSlackGraph *a, const LhSlackGraph *b)
{
    uint32_t nth[] = { 1, 2, 3, 7 };
    void *data[G_N_ELEMENTS(nth)];
    LhTime of_a[G_N_ELEMENTS(nth)], of_b[G_N_ELEMENTS(nth)];

    if (strstr(members, "closed-form") == NULL)
        return;
    for (guint i = 0; i < G_N_ELEMENTS(nth); i++)
        data[i] = &nth[i];
    lh_slack_replay(a, some_shorter, data, G_N_ELEMENTS(nth), of_a);
    lh_slack_replay(b, some_shorter, data, G_N_ELEMENTS(nth), of_b);
    for (guint i = 0; i < G_N_ELEMENTS(nth); i++)
        ck_assert_msg(of_a[i] == of_b[i],
                      "%s: each %u. op shorter: %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " ps",
                      members, nth[i], of_a[i], of_b[i]);
}

/* Asserts that a folded graph says of ops what the whole one does. */
static void
check_graphs(const char *members, const LhSlackGraph *folded, const LhSlackGraph *whole)
{
    OpSlacks a = slacks_of(folded), b = slacks_of(whole);
    GHashTableIter iter;
    gpointer key, value;

    ck_assert_msg(a.ops == b.ops && a.no_slack == b.no_slack,
                  "%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                  " ops without slack, in the whole graph %" G_GUINT64_FORMAT
                  " of %" G_GUINT64_FORMAT,
                  members, a.no_slack, a.ops, b.no_slack, b.ops);
    g_hash_table_iter_init(&iter, a.slacks);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const uint64_t op = *(const uint64_t *)key;
        const LhTime *other = g_hash_table_lookup(b.slacks, key);

        ck_assert_msg(other != NULL && *other == *(const LhTime *)value,
                      "%s: rank %u, op %u: slack %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " ps",
                      members, (uint32_t)(op >> 32), (uint32_t)op, *(const LhTime *)value,
                      other != NULL ? *other : -1);
    }
    ck_assert_uint_eq(folded->calls->len, whole->calls->len);
    for (guint i = 0; i < folded->calls->len; i++) {
        const LhSlackCalls *calls = &g_array_index(folded->calls, LhSlackCalls, i);
        LhSlackCalls *like = NULL;

        for (guint k = 0; k < whole->calls->len; k++) {
            like = &g_array_index(whole->calls, LhSlackCalls, k);
            if (like->kind == calls->kind && like->phase == calls->phase &&
                like->kernel == calls->kernel && like->tier == calls->tier)
                break;
        }
        ck_assert_msg(like->rank == calls->rank && like->op == calls->op &&
                          like->calls == calls->calls && like->time_ps == calls->time_ps,
                      "%s: calls %u", members, i);
    }
    check_replays(members, folded, whole);
    g_hash_table_unref(a.slacks);
    g_hash_table_unref(b.slacks);
}

/* ---- critical paths ---- */

/* Asserts that a folded run says what a run of all ranks says. Of equivalent ranks, either may be
 * on the path. */
static void
check_critical(const char *members, const LhSetup *setup, const LhProgram *program)
{
    LhCompareRow *rows[2];
    LhCritical *critical[2];

    for (unsigned i = 0; i < 2; i++) {
        LhHooks hooks = { .unfolded = i == 1 };

        lh_critical_hooks(&hooks);
        rows[i] = lh_compare_run_program(setup, program, &hooks);
        critical[i] = lh_critical_find(setup, rows[i], NULL, NULL);
    }
    ck_assert_uint_le(rows[0]->result->simulated_ranks, rows[1]->result->simulated_ranks);
    ck_assert_uint_eq(critical[0]->groups->len, critical[1]->groups->len);
    for (guint g = 0; g < critical[0]->groups->len; g++) {
        const LhCallGroup *a = &g_array_index(critical[0]->groups, LhCallGroup, g);
        const LhCallGroup *b = &g_array_index(critical[1]->groups, LhCallGroup, g);

        ck_assert_msg(a->kind == b->kind, "%s: kind", members);
        ck_assert_msg(a->phase == b->phase, "%s: phase", members);
        ck_assert_msg(a->kernel == b->kernel, "%s: kernel", members);
        ck_assert_msg(a->calls == b->calls, "%s: calls", members);
        ck_assert(a->time_ps == b->time_ps);
        ck_assert_msg(a->path_ps == b->path_ps, "%s: path_ps", members);
        ck_assert_uint_le(a->path_calls, b->path_calls); /* an op counts once for all of them */
        ck_assert_msg(a->critical == b->critical, "%s: critical", members);
        ck_assert_msg(a->least_ps == b->least_ps, "%s: least_ps", members);
        ck_assert_msg(a->most_ps == b->most_ps, "%s: most_ps", members);
    }
    for (unsigned k = 0; k < 2; k++) {
        const GArray *a = k == 0 ? critical[0]->by_group : critical[0]->by_op;
        const GArray *b = k == 0 ? critical[1]->by_group : critical[1]->by_op;

        ck_assert_msg(a->len == b->len, "%s: len", members);
        for (guint i = 0; i < a->len; i++) {
            const LhSpeedUp *x = &g_array_index(a, LhSpeedUp, i);
            const LhSpeedUp *y = &g_array_index(b, LhSpeedUp, i);

            if (k == 1 && x->op != y->op) /* of paths that take equally long, another */
                break;
            ck_assert_msg(x->group == y->group, "%s: group", members);
            ck_assert_msg(x->path_ps == y->path_ps, "%s: path_ps", members);
            ck_assert_msg(x->saved_ps == y->saved_ps, "%s: saved_ps", members);
            ck_assert_msg(x->state == y->state, "%s: state", members);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        lh_critical_free(critical[i]);
        lh_compare_row_free(rows[i]);
    }
}

/* ---- runs ---- */

/* A third of all ops are faster: the same ones on all ranks. */
static double
faster(void *data, uint32_t rank, uint32_t id, const LhOp *op, const LhOpBuffer *buffer)
{
    (void)data;
    (void)rank;
    (void)op;
    (void)buffer;
    return id % 3 == 0 ? 1 / 1.1 : 1;
}

/* @path: with its graph of dependences; @critical: with its critical path.
 * Returns the share of ranks that were simulated; 0 if the step is rejected. @machine_ranks:
 * consecutive ranks that share half as many cores; 0: no sharing. */
static double
check(const char *members, bool path, bool critical, uint64_t machine_ranks)
{
    LhScenario *scenario;
    g_autoptr(LhSetup) setup = setup_of(members, &scenario);
    g_autoptr(LhProgram) program = NULL;
    double share = 0;

    if (setup != NULL)
        program = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), NULL);
    if (program != NULL) {
        LhSimParams params = params_of(setup, program, path);
        LhDevice device = *setup->device;
        g_autoptr(GError) error = NULL;
        LhSymmetryGroups fold = { .kept = 0 };
        g_autoptr(LhSimResult) folded = NULL;
        g_autoptr(LhSimResult) again = NULL;
        g_autoptr(LhSimResult) whole = NULL;

        device.machine_ranks = machine_ranks;
        device.machine_cores = machine_ranks / 2;
        params.device = &device;
        if (!path) {
            params.time_share = faster;
            params.time_share_alike = true;
        }
        params.fold = &fold;
        params.precedence = path;
        folded = lh_simulate(&params, &error);
        if (folded != NULL && folded->path != NULL)
            check_path(folded);
        again = lh_simulate(&params, &error);
        params.unfolded = true;
        params.path = params.precedence;
        whole = lh_simulate(&params, &error);
        ck_assert_msg(whole != NULL && folded != NULL, "%s: %s", members,
                      error != NULL ? error->message : "");
        ck_assert_uint_eq(whole->simulated_ranks, whole->ranks_count);
        check_same(members, folded, whole);
        check_same(members, again, whole);
        if (path && folded->simulated_ranks < folded->ranks_count)
            check_graphs(members, folded->precedence, whole->precedence);
        if (critical && folded->simulated_ranks < folded->ranks_count)
            check_critical(members, setup, program);
        ck_assert_uint_eq(again->simulated_ranks, folded->simulated_ranks);
        share = (double)folded->simulated_ranks / folded->ranks_count;
    }
    lh_setup_free(g_steal_pointer(&setup));
    lh_scenario_free(scenario);
    return share;
}

/* ---- cases ---- */

static char *
random_members(uint64_t seed)
{
    static const char *const models[] = { "gpt3-125m", "llama-3.1-405b-4l", "gpt3-1.3b", NULL };
    static const char *const clusters[] = { "hgx-h100",  "dgx-a100-80g",  "hgx-b200",
                                            "dfa-2node", "fat-tree-a100", "nvl72",
                                            NULL };
    static const char *const networks[] = { "fair", "fair", "fair", "alpha-beta", "fifo", NULL };
    static const char *const collectives[] = { "auto",        "fluid",       "fluid",
                                               "closed-form", "closed-form", "ring",
                                               "nccl",        "tree",        NULL };
    static const char *const shards[] = { "ddp", "zero1", "zero2", "fsdp", NULL };
    /* With the members behind a policy. */
    static const char *const checkpoints[] = {
        "none",
        "selective",
        "layer",
        "remat",
        "selective\", \"recompute_modules\": \"layernorm,core_attn",
        "layer\", \"recompute_method\": \"every\", \"recompute_num_layers\": \"2",
        "layer\", \"recompute_method\": \"uniform\", \"recompute_num_layers\": \"2",
        NULL
    };
    static const char *const schedules[] = { "ring",   "zigzag",       "te-allgather",
                                             "te-a2a", "dfa-balanced", NULL };
    static const char *const frameworks[] = { "pytorch-fsdp", "megatron-lm", "deepspeed", NULL };
    static const uint32_t tensor[] = { 1, 2, 4, 4, 8, 8 }, context[] = { 1, 2, 4 };
    static const uint32_t data[] = { 1, 2, 4, 6 }, stages[] = { 1, 1, 2, 4 };
    const uint32_t t = number(tensor, G_N_ELEMENTS(tensor), seed, 1);
    const uint32_t c = number(context, G_N_ELEMENTS(context), seed, 2);
    const uint32_t d = number(data, G_N_ELEMENTS(data), seed, 3);
    const uint32_t p = number(stages, G_N_ELEMENTS(stages), seed, 4);
    const char *network = pick(networks, seed, 5), *cluster = pick(clusters, seed, 6);
    const bool packed = lh_rng_bits(seed, 14, 0) % 8 == 0;
    const uint32_t ranks = t * c * d * p, node = strcmp(cluster, "nvl72") == 0 ? 72 : 8;

    return g_strdup_printf(
        "\"model\": \"%s\", \"cluster\": \"%s:%u\", \"ranks\": %u, \"seq_length\": \"4K\", "
        "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
        "\"data_parallel_size\": %u, \"pipeline_model_parallel_size\": %u, "
        "\"num_micro_batches\": %u, \"network\": \"%s\", \"collectives\": \"%s\", "
        "\"shard\": \"%s\", \"checkpoint\": \"%s\", \"schedule\": [\"%s\"], \"framework\": "
        "\"%s\"%s",
        pick(models, seed, 7), cluster, (ranks + node - 1) / node, ranks, t, c, d, p,
        1 + (uint32_t)(lh_rng_bits(seed, 8, 0) % 3), network,
        strcmp(network, "fair") == 0 ? pick(collectives, seed, 9) : "ring", pick(shards, seed, 10),
        pick(checkpoints, seed, 11), pick(schedules, seed, 12), pick(frameworks, seed, 13),
        packed ? ", \"document_distribution\": \"exponential:1K\"" : "");
}

START_TEST(folded_steps_are_whole_steps)
{
    const bool all = g_getenv("LONGHAUL_TEST_ALL") != NULL;
    const uint64_t cases = all ? 2000 : MAX(test_share(80), 8);
    uint64_t ran = 0, folded = 0;

    for (uint64_t seed = 1; seed <= cases; seed++) {
        g_autofree char *members = random_members(seed);
        const double share = check(members, seed % 2 == 0, seed % CRITICAL == 0, 0);

        ran += share > 0;
        folded += share > 0 && share < 1;
        if (seed % SHARING == 0 && share > 0)
            ck_assert_double_eq(check(members, false, false, 4), 1);
    }
    ck_assert_uint_gt(ran, cases / 2);
    ck_assert_uint_gt(folded, cases / 8);
}
END_TEST

/* Critical paths of small steps with each kind of collectives, whatever the share of cases. */
START_TEST(folded_paths_are_whole_paths)
{
    static const struct {
        const char *cluster, *collectives, *shard, *seq_length;
        uint32_t tensor, context, data, stages;
    } cases[] = {
        { "hgx-h100:4", "closed-form", "ddp", "4K", 8, 1, 2, 2 },
        { "hgx-h100:4", "closed-form", "zero1", "4K", 4, 2, 4, 1 },
        { "hgx-h100:4", "fluid", "ddp", "4K", 4, 2, 4, 1 },
        { "fat-tree-a100:4", "fluid", "zero1", "4K", 8, 1, 4, 1 },
        { "hgx-h100:16", "auto", "zero1", "4K", 8, 1, 16, 1 },
        { "nvl72:2", "nccl", "ddp", "4K", 8, 1, 6, 2 },
        /* the last rank of each group is slow */
        { "hgx-h100:4", "closed-form", "ddp", "256K", 1, 8, 4, 1 },
    };
    unsigned folded = 0;

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *members = g_strdup_printf(
            "\"model\": \"llama-3.1-405b-4l\", \"cluster\": \"%s\", \"ranks\": %u, \"seq_length\": "
            "\"%s\", "
            "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
            "\"data_parallel_size\": %u, \"pipeline_model_parallel_size\": %u, "
            "\"num_micro_batches\": 2, \"collectives\": \"%s\", \"shard\": \"%s\", \"schedule\": "
            "[\"ring\"]",
            cases[i].cluster, cases[i].tensor * cases[i].context * cases[i].data * cases[i].stages,
            cases[i].seq_length, cases[i].tensor, cases[i].context, cases[i].data, cases[i].stages,
            cases[i].collectives, cases[i].shard);
        const double share = check(members, true, true, 0);

        folded += share > 0 && share < 1;
    }
    ck_assert_uint_ge(folded, 6);
}
END_TEST

/* Nodes of PCIe trees are equivalent; GPUs of one node are not. */
START_TEST(folded_trees_are_whole_trees)
{
    static const char box[] =
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\", \"device\": "
        "\"l20\", "
        "\"node\": {\"gpus\": 4, \"scale_up\": {\"kind\": \"none\"}, \"pcie\": {\"bandwidth\": "
        "\"24GB/s\", \"latency\": \"1us\", \"ctas\": 2, \"provenance\": \"assumed\", \"source\": "
        "\"s\", "
        "\"levels\": [{\"name\": \"socket\", \"of_gpu\": [0, 1, 0, 1], \"up\": \"9GB/s\", "
        "\"provenance\": \"assumed\", \"source\": \"s\"}], \"p2p\": \"none\", \"p2p_two\": true, "
        "\"host\": {\"per_gpu\": \"16GB/s\", \"bandwidth\": \"30GB/s\", \"provenance\": "
        "\"assumed\", "
        "\"source\": \"s\"}}, \"nics\": {\"count\": 2, \"bandwidth\": \"10GB/s\", \"latency\": "
        "\"5us\", "
        "\"ctas\": 2, \"provenance\": \"assumed\", \"source\": \"s\"}}}";
    static const char *const collectives[] = { "auto", "fluid", "ring", "closed-form", "nccl" };
    g_autofree char *folder = g_dir_make_tmp("fold-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "t.json", NULL);
    unsigned folded = 0;

    ck_assert(g_file_set_contents(path, box, -1, NULL));
    for (guint i = 0; i < 3 * G_N_ELEMENTS(collectives); i++) {
        static const unsigned tensor[] = { 1, 2, 4 };
        const unsigned t = tensor[i % 3];
        g_autofree char *members = g_strdup_printf(
            "\"model\": \"gpt3-125m\", \"cluster\": \"%s:4\", \"ranks\": 16, \"seq_length\": "
            "\"4K\", "
            "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
            "\"data_parallel_size\": 4, \"collectives\": \"%s\", \"schedule\": [\"%s\"]",
            path, t, 4 / t, collectives[i / 3], i % 2 == 0 ? "zigzag" : "te-a2a");
        const double share = check(members, false, false, 0);

        folded += share > 0 && share < 1;
    }
    g_remove(path);
    g_rmdir(folder);
    ck_assert_uint_gt(folded, 5);
}
END_TEST

/* ---- NICs and trunks ---- */

/* A topology of eight-GPU NVSwitch nodes with the NICs @nics and, behind them, @rest. */
static char *
cluster_text(const char *nics, const char *rest)
{
    static const char link[] =
        "\"latency\": \"2us\", \"ctas\": 2, \"provenance\": \"assumed\", \"source\": \"s\"";

    return g_strdup_printf(
        "{\"schema\": \"longhaul.topology/2\", \"name\": \"t\", \"source\": \"s\", \"device\": "
        "\"h100-sxm\", \"node\": {\"gpus\": 8, \"scale_up\": {\"kind\": \"nvswitch\", "
        "\"bandwidth\": \"300GB/s\", %s}, \"pcie\": {\"bandwidth\": \"40GB/s\", %s}, \"nics\": "
        "{%s, \"bandwidth\": \"20GB/s\", %s}}%s}",
        link, link, nics, link, rest);
}

/* Checks a step on @nodes nodes, @span of them per data-parallel rank; @i selects the tensor and
 * context parallelism. */
static double
check_on(const char *path, guint i, uint32_t nodes, uint32_t span)
{
    static const char *const collectives[] = { "auto", "fluid", "ring", "closed-form", "nccl" };
    static const unsigned tensor[] = { 8, 4, 2, 1 };
    const unsigned t = tensor[i % G_N_ELEMENTS(tensor)];
    g_autofree char *members = g_strdup_printf(
        "\"model\": \"gpt3-1.3b\", \"cluster\": \"%s:%u\", \"ranks\": %u, \"seq_length\": "
        "\"4K\", \"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
        "\"data_parallel_size\": %u, \"collectives\": \"%s\", \"schedule\": [\"%s\"]",
        path, nodes, 8 * nodes, t, 8 * span / t, nodes / span,
        collectives[i % G_N_ELEMENTS(collectives)], i % 3 == 0 ? "te-a2a" : "zigzag");

    return check(members, false, false, 0);
}

#define TREE                                                                                       \
    ", \"fabric\": {\"kind\": \"fat-tree\", \"levels\": [{\"nodes\": 2, \"oversubscription\": "    \
    "2}, "                                                                                         \
    "{\"nodes\": 4, \"oversubscription\": 3}], \"switch_latency\": \"1us\"}"

START_TEST(folded_networks_are_whole_networks)
{
    static const struct {
        const char *nics, *rest;
        uint32_t nodes, span;
    } cases[] = {
        { "\"count\": 8, \"of_gpu\": [7, 6, 5, 4, 0, 1, 2, 3]", "", 4, 1 },
        { "\"count\": 8, \"of_gpu\": [7, 6, 5, 4, 0, 1, 2, 3]",
          ", \"fabric\": {\"kind\": \"rail\"}", 4, 1 },
        { "\"count\": 3", "", 4, 1 },
        { "\"count\": 4, \"of_gpu\": [0, 1, 2, 3, 0, 1, 2, 3]", "", 4, 1 },
        { "\"count\": 8", TREE, 8, 2 },
        { "\"count\": 5", TREE, 8, 4 },
        { "\"count\": 3, \"of_gpu\": [2, 0, 0, 1, 1, 0, 2, 0]",
          ", \"fabric\": {\"kind\": \"rail\"}", 4, 1 },
    };
    g_autofree char *folder = g_dir_make_tmp("fold-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "t.json", NULL);
    unsigned folded = 0;

    for (guint i = 0; i < 4 * G_N_ELEMENTS(cases); i++) {
        const guint c = i % G_N_ELEMENTS(cases);
        g_autofree char *text = cluster_text(cases[c].nics, cases[c].rest);
        double share;

        ck_assert(g_file_set_contents(path, text, -1, NULL));
        share = check_on(path, i, cases[c].nodes, cases[c].span);
        folded += share > 0 && share < 1;
    }
    g_remove(path);
    g_rmdir(folder);
    ck_assert_uint_gt(folded, G_N_ELEMENTS(cases));
}
END_TEST

LH_TEST_MAIN("fold", folded_steps_are_whole_steps, folded_paths_are_whole_paths,
             folded_trees_are_whole_trees, folded_networks_are_whole_networks)
