/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCIe of a node: a GPU's own link and the tree above it, from files and the base, and rates that
 * only runs give. The bandwidth through memory is that of rings whose hops go there. If an
 * all-to-all was slower than other links explain, the links of the outermost groups limited it.
 * Left out: memory bandwidth shared by all GPUs of a node.
 */
#include "import/cluster/topology_private.h"

#include "sim/network/link_bound.h"

#include <math.h>
#include <string.h>

#define FULL 0.95    /* part of a link's rate from which it counts as the limit */
#define FASTER 1.05  /* least advantage of two GPUs alone over more */
#define RING_RANKS 3 /* from this size on, a ring differs from a pair */

bool
lh_tool_is_joined(const LhToolDraft *d)
{
    return d->t.scale_up == LH_SCALE_UP_SWITCH || d->t.scale_up == LH_SCALE_UP_MEMORY ||
           d->t.gpus_per_node == 1 ||
           (d->t.scale_up == LH_SCALE_UP_PAIRS && d->t.gpus_per_node == 2);
}

bool
lh_tool_is_over_nvlink(const LhToolDraft *d, uint64_t ranks)
{
    return d->t.scale_up == LH_SCALE_UP_SWITCH || d->t.scale_up == LH_SCALE_UP_MEMORY ||
           (d->t.scale_up == LH_SCALE_UP_PAIRS && ranks == 2);
}

/* --- the tree -----------------------------------------------------------------------------------
 */

static char *
kept(const LhToolDraft *d, const char *text)
{
    return text == NULL ? NULL : g_string_chunk_insert(d->strings, text);
}

static LhPcieLevel *
draft_level(const LhToolDraft *d, guint level)
{
    return &g_array_index(d->levels, LhPcieLevel, level);
}

static bool
is_base_like(const LhToolDraft *d)
{
    const LhTopology *base = d->params->base;

    return base != NULL && base->pcie.bandwidth > 0 && base->gpus_per_node == d->t.gpus_per_node &&
           base->scale_up == d->t.scale_up;
}

/* GPUs per group, if groups are equal and consecutive; else 0. */
static uint64_t
row_of(const GArray *of_gpu)
{
    const guint count = of_gpu->len / ((guint)g_array_index(of_gpu, uint64_t, of_gpu->len - 1) + 1);

    for (guint g = 0; g < of_gpu->len; g++) {
        if (g_array_index(of_gpu, uint64_t, g) != g / count)
            return 0;
    }
    return of_gpu->len % count == 0 ? count : 0;
}

static bool
is_of_groups(const LhPcieTree *tree, uint32_t level, const GArray *of_gpu)
{
    for (guint g = 0; g < of_gpu->len; g++) {
        if (lh_pcie_group(tree, level, g) != g_array_index(of_gpu, uint64_t, g))
            return false;
    }
    return true;
}

/* Takes the rate of the same groups from the base. */
static void
keep_level(const LhToolDraft *d, LhPcieLevel *level, const GArray *of_gpu)
{
    const LhPcieTree *tree = &d->params->base->tree;

    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        const LhPcieLevel *before = &g_array_index(tree->levels, LhPcieLevel, i);

        if (before->from.source == NULL || !is_of_groups(tree, i, of_gpu))
            continue;
        level->up = before->up;
        level->latency_ps = before->latency_ps;
        level->from = before->from;
    }
}

static void
take_level(LhToolDraft *d, const LhToolLevel *told)
{
    LhPcieLevel level = { .name = kept(d, told->name),
                          .gpus = row_of(told->of_gpu),
                          .up = told->up,
                          .from = { told->source == NULL ? -1 : LH_PROVENANCE_DATASHEET,
                                    kept(d, told->source) } };

    if (level.gpus == 0)
        level.of_gpu = told->of_gpu;
    if (told->up == 0 && is_base_like(d))
        keep_level(d, &level, told->of_gpu);
    g_array_append_val(d->levels, level);
}

/* Takes memory rates from the base, unless files give them. */
static void
keep_memory(LhToolDraft *d)
{
    const LhPcieTree *tree = &d->params->base->tree;

    if (d->told->tree.by_memory < 1)
        return;
    d->t.tree.per_gpu = tree->per_gpu;
    d->t.tree.memory = tree->memory;
    d->t.tree.memory_gpus = tree->memory_gpus;
    d->t.tree.memory_from = tree->memory_from;
}

/* Takes the tree from files. */
static void
take_tree(LhToolDraft *d)
{
    const LhToolTree *told = &d->told->tree;

    for (guint i = 0; i < told->levels->len; i++)
        take_level(d, &g_array_index(told->levels, LhToolLevel, i));
    d->t.tree.p2p = strcmp(told->p2p, "node") == 0 ? NULL : kept(d, told->p2p);
    d->t.tree.p2p_two = told->p2p_two;
    if (is_base_like(d) && d->t.tree.p2p != NULL &&
        g_strcmp0(d->t.tree.p2p, d->params->base->tree.p2p) == 0)
        keep_memory(d);
}

/* Takes the tree from a base of the same shape. */
static void
keep_tree(LhToolDraft *d)
{
    const LhPcieTree *tree = &d->params->base->tree;

    d->t.tree = *tree;
    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++)
        g_array_append_val(d->levels, g_array_index(tree->levels, LhPcieLevel, i));
}

static bool
has_told_tree(const LhToolDraft *d)
{
    return d->told->tree.gpus > 0 && d->told->tree.gpus == d->t.gpus_per_node;
}

/* Fills in the tree. Returns its source; NULL: no tree. */
static const char *
fill_tree_of_node(LhToolDraft *d)
{
    const bool told = has_told_tree(d), base = !told && is_base_like(d);

    if (told)
        take_tree(d);
    else if (base)
        keep_tree(d);
    d->t.tree.levels = d->levels->len > 0 ? d->levels : NULL;
    lh_pcie_fill_rates(&d->t.tree);
    return told ? d->told->tree.source : base ? d->params->base->name : NULL;
}

/* --- loads --------------------------------------------------------------------------------------
 */

/* Number of the run's GPUs in the group of @gpu. */
static uint32_t
members(const LhToolDraft *d, uint32_t level, uint32_t gpu, uint64_t ranks)
{
    uint32_t count = 0;

    for (uint32_t g = 0; g < ranks; g++)
        count += lh_pcie_group(&d->t.tree, level, g) == lh_pcie_group(&d->t.tree, level, gpu);
    return count;
}

/* Load of a level's busiest link, bytes/s. A ring crosses each link once. */
static double
load_on_level(const LhToolDraft *d, uint32_t level, const LhToolRun *run)
{
    const double others = (double)run->ranks - 1;
    double load = 0;

    for (uint32_t g = 0; g < run->ranks; g++) {
        const double in = members(d, level, g, run->ranks), out = (double)run->ranks - in;
        const double pairs = run->op == LH_COLL_ALL_TO_ALL ? in * out / others : 1;

        if (out > 0)
            load = fmax(load, run->rate * pairs);
    }
    return load;
}

/* Largest load that a GPU of the run sends through memory, bytes/s. */
static double
load_on_memory(const LhToolDraft *d, const LhToolRun *run)
{
    const LhPcieTree *tree = &d->t.tree;
    double load = 0;

    if (run->ranks == 2 && tree->p2p_two)
        return 0;
    for (uint32_t g = 0; g < run->ranks; g++) {
        uint32_t far = 0;

        for (uint32_t h = 0; h < run->ranks; h++)
            far +=
                h != g && lh_pcie_is_through_memory(&tree->rates, lh_pcie_common_level(tree, g, h));
        if (far > 0)
            load = fmax(load, run->op == LH_COLL_ALL_TO_ALL
                                  ? run->rate * far / ((double)run->ranks - 1)
                                  : run->rate);
    }
    return load;
}

/* Fastest run of @runs over PCIe; with @sends, fastest ring of direct sends. NULL: none. */
static const LhToolRun *
fastest_run(const LhToolDraft *d, const GArray *runs, bool sends)
{
    const LhToolRun *fastest = NULL;

    for (guint i = 0; i < runs->len; i++) {
        const LhToolRun *run = &g_array_index(runs, LhToolRun, i);

        if (lh_tool_is_over_nvlink(d, run->ranks) ||
            (sends && (run->op != LH_TIMES_OF_SENDS || load_on_memory(d, run) > 0)))
            continue;
        if (run->rate > (fastest == NULL ? 0 : fastest->rate))
            fastest = run;
    }
    return fastest;
}

/* --- rates --------------------------------------------------------------------------------------
 */

/* Bandwidth of a GPU's own link. Direct sends measure it. */
static LhToolFound
find_own_rate(const LhToolDraft *d, const GArray *runs)
{
    const LhTopology *base = d->params->base;
    const LhToolRun *direct = fastest_run(d, runs, true), *fastest = fastest_run(d, runs, false);
    LhToolFound rate = lh_tool_take(lh_tool_of(d, LH_TOOL_PCIE_RATE));

    if (direct != NULL)
        rate =
            (LhToolFound){ direct->rate, LH_PROVENANCE_MEASURED, direct->source, direct->source };
    if (rate.source == NULL && base != NULL && base->pcie.bandwidth > 0) {
        rate.value = base->pcie.bandwidth;
        return lh_tool_at_least(fastest, rate);
    }
    return rate.source == NULL ? lh_tool_take_sends(d, false, false)
                               : lh_tool_at_least(fastest, rate);
}

/* Fastest ring through memory, of two GPUs or of more; *@load is its load. */
static const LhToolRun *
fastest_through_memory(const LhToolDraft *d, const GArray *runs, bool of_two, double *load)
{
    const LhToolRun *fastest = NULL;

    *load = 0;
    for (guint i = 0; i < runs->len; i++) {
        const LhToolRun *run = &g_array_index(runs, LhToolRun, i);
        const double rate = load_on_memory(d, run); /* nocheck:unit: bytes/s */

        if (lh_tool_is_over_nvlink(d, run->ranks) || run->op == LH_COLL_ALL_TO_ALL ||
            (run->ranks < RING_RANKS) != of_two || rate <= *load)
            continue;
        fastest = run;
        *load = rate;
    }
    return fastest;
}

static void
set_memory(LhToolDraft *d, double rate, int provenance, const char *source)
{
    d->t.tree.per_gpu = rate;
    d->t.tree.memory_from = (LhEvidence){ provenance, kept(d, source) };
    lh_pcie_fill_rates(&d->t.tree);
}

/* "all_gather_perf (log.txt), 8 GPUs: what each of them reached". */
static char *
source_of_run(const LhToolRun *run, const char *what)
{
    return g_strdup_printf("%s, %" G_GUINT64_FORMAT " GPUs: %s", run->source, run->ranks, what);
}

/* Fits the bandwidth through memory, and whether two GPUs alone bypass it. */
static void
fit_memory(LhToolDraft *d, const GArray *runs)
{
    double many, two;
    const LhToolRun *of_many = fastest_through_memory(d, runs, false, &many);
    const LhToolRun *of_two = fastest_through_memory(d, runs, true, &two);
    const LhToolRun *run = of_many != NULL ? of_many : of_two;
    g_autofree char *source = NULL;

    if (of_many != NULL && two > FASTER * many) {
        d->t.tree.p2p_two = true;
        lh_tool_remark(d,
                       g_strdup_printf("node.pcie.p2p_two: two GPUs alone were faster than several "
                                       "at once (%s), so they are assumed to communicate directly",
                                       of_two->source));
    }
    if (run != NULL) {
        source = source_of_run(run, "what each of them reached at once, through memory");
        set_memory(d, MIN(of_many != NULL ? many : two, d->t.pcie.bandwidth), LH_PROVENANCE_FITTED,
                   source);
    } else if (has_told_tree(d) && d->told->tree.by_memory < 1 &&
               d->t.tree.memory_from.source == NULL) {
        source = g_strdup_printf("NCCL's src/graph/topo.h: messages between GPUs that leave their "
                                 "switch reach 5/6 of a GPU's link on Intel hosts; %s",
                                 d->told->tree.source);
        set_memory(d, d->told->tree.by_memory * d->t.pcie.bandwidth, LH_PROVENANCE_DATASHEET,
                   source);
    }
}

static void
set_level(LhToolDraft *d, uint32_t level, double rate, const LhToolRun *run, const char *what)
{
    LhPcieLevel *const l = draft_level(d, level);
    g_autofree char *source = source_of_run(run, what);

    l->up = rate;
    l->from = (LhEvidence){ LH_PROVENANCE_FITTED, kept(d, source) };
    lh_pcie_fill_rates(&d->t.tree);
}

/* Raises rates of links to what a run has carried over them. */
static void
raise_to_run(LhToolDraft *d, const LhToolRun *run)
{
    const double memory = load_on_memory(d, run);

    for (uint32_t i = 0; i < d->levels->len; i++) {
        const double load = load_on_level(d, i, run);

        if (draft_level(d, i)->up > 0 && load > FASTER * draft_level(d, i)->up)
            set_level(d, i, load, run, "no less than what went over it");
    }
    if (d->t.tree.memory_from.source != NULL && d->t.tree.per_gpu > 0 &&
        memory > FASTER * d->t.tree.per_gpu) {
        g_autofree char *source = source_of_run(run, "no less than what went through it");

        set_memory(d, memory, LH_PROVENANCE_FITTED, source);
    }
    if (d->t.tree.memory > 0)
        d->t.tree.memory = fmax(d->t.tree.memory, memory * (double)run->ranks);
}

/* Whether some link other than those of the outermost level was saturated. */
static bool
is_explained(const LhToolDraft *d, const LhToolRun *run)
{
    bool full = run->rate >= FULL * d->t.pcie.bandwidth ||
                (d->t.tree.per_gpu > 0 && load_on_memory(d, run) >= FULL * d->t.tree.per_gpu);

    for (uint32_t i = 0; i + 1 < d->levels->len; i++)
        full = full || (draft_level(d, i)->up > 0 &&
                        load_on_level(d, i, run) >= FULL * draft_level(d, i)->up);
    return full;
}

/* All-to-all on the most GPUs, the fastest of these; NULL: none over PCIe. */
static const LhToolRun *
largest_all_to_all(const LhToolDraft *d, const GArray *runs)
{
    const LhToolRun *largest = NULL;

    for (guint i = 0; i < runs->len; i++) {
        const LhToolRun *run = &g_array_index(runs, LhToolRun, i);

        if (run->op == LH_COLL_ALL_TO_ALL && !lh_tool_is_over_nvlink(d, run->ranks) &&
            (largest == NULL || run->ranks > largest->ranks ||
             (run->ranks == largest->ranks && run->rate > largest->rate)))
            largest = run;
    }
    return largest;
}

static void
fit_levels(LhToolDraft *d, const GArray *runs)
{
    const LhToolRun *all = largest_all_to_all(d, runs);
    const uint32_t outermost = d->levels->len - 1;
    const double load = all == NULL || d->levels->len == 0 ? 0 : load_on_level(d, outermost, all);

    if (load > 0 && !is_explained(d, all))
        set_level(d, outermost, load, all,
                  "what went over it at once, slower than other links are");
    for (guint i = 0; i < runs->len; i++) {
        if (!lh_tool_is_over_nvlink(d, g_array_index(runs, LhToolRun, i).ranks))
            raise_to_run(d, &g_array_index(runs, LhToolRun, i));
    }
}

/* --- notes
 * -------------------------------------------------------------------------------------- */

static const char *const level_paths[LH_PCIE_LEVELS_MAX] = {
    "node.pcie.levels[0]", "node.pcie.levels[1]", "node.pcie.levels[2]", "node.pcie.levels[3]"
};

/* "socket, 22 GB/s". Caller frees. */
static char *
describe_level(const LhPcieLevel *level)
{
    g_autofree char *up = lh_format_bandwidth(level->up);

    return level->up > 0 ? g_strdup_printf("%s, %s", level->name, up) : g_strdup(level->name);
}

/* Source to show: the base's name for values taken from it. */
static const char *
shown_source(const LhToolDraft *d, const char *source)
{
    const LhTopology *base = d->params->base;
    bool kept_source = base != NULL && source == base->tree.memory_from.source;

    for (uint32_t i = 0; base != NULL && i < lh_pcie_levels_count(&base->tree); i++)
        kept_source |= source == g_array_index(base->tree.levels, LhPcieLevel, i).from.source;
    return kept_source ? base->name : source;
}

static void
note_tree(const LhToolDraft *d, const char *from)
{
    const LhPcieTree *tree = &d->t.tree;

    for (guint i = 0; i < d->levels->len; i++) {
        const LhPcieLevel *level = draft_level(d, i);

        lh_tool_note(d, level_paths[i], describe_level(level),
                     level->from.source == NULL ? -1 : level->from.provenance,
                     level->from.source == NULL ? from : shown_source(d, level->from.source));
    }
    if (tree->p2p != NULL)
        lh_tool_note(d, "node.pcie.p2p", g_strdup(tree->p2p), -1, from);
    if (tree->p2p_two)
        lh_tool_note(d, "node.pcie.p2p_two", g_strdup("true"), -1, from);
    if (tree->memory_from.source != NULL)
        lh_tool_note(d, "node.pcie.host",
                     lh_format_bandwidth(tree->per_gpu > 0 ? tree->per_gpu : tree->memory),
                     tree->memory_from.provenance, shown_source(d, tree->memory_from.source));
}

/* Remarks on rates that are NCCL's constants and were not measured. */
static void
remark_constants(const LhToolDraft *d)
{
    g_autoptr(GString) fields = g_string_new(NULL);

    for (guint i = 0; i < d->levels->len; i++) {
        if (draft_level(d, i)->up > 0 &&
            draft_level(d, i)->from.provenance == LH_PROVENANCE_DATASHEET)
            g_string_append_printf(fields, "%s%s.up", fields->len > 0 ? ", " : "", level_paths[i]);
    }
    if (d->t.tree.per_gpu > 0 && d->t.tree.memory_from.provenance == LH_PROVENANCE_DATASHEET)
        g_string_append_printf(fields, "%snode.pcie.host.per_gpu", fields->len > 0 ? ", " : "");
    if (fields->len > 0)
        lh_tool_remark(
            d,
            g_strdup_printf("%s: NCCL's constants, not measured; such machines differ by a factor "
                            "of ten: all_gather_perf, alltoall_perf and sendrecv_perf on all %" //
                            G_GUINT64_FORMAT " GPUs give it",
                            fields->str, d->t.gpus_per_node));
}

/* Remarks on links of unknown bandwidth, which never limit. */
static void
remark_unknown(const LhToolDraft *d)
{
    const guint last = d->levels->len;

    for (guint i = 0; i < last; i++) {
        if (draft_level(d, i)->up > 0)
            continue;
        lh_tool_remark(
            d, g_strdup_printf("%s: no file gives the bandwidth of the link of a %s, so it is "
                               "never the limit; %s gives it, and alltoall_perf on all %" //
                               G_GUINT64_FORMAT " GPUs%s%s",
                               level_paths[i], draft_level(d, i)->name,
                               "NCCL's topology XML (NCCL_TOPO_DUMP_FILE)", d->t.gpus_per_node,
                               d->told->tree.asks != NULL ? ": " : "",
                               d->told->tree.asks != NULL ? d->told->tree.asks : ""));
    }
    if (d->t.tree.p2p != NULL && d->t.tree.memory_from.source == NULL)
        lh_tool_remark(d,
                       g_strdup_printf("node.pcie.host: the bandwidth through memory is assumed to "
                                       "be that of the GPUs' links; all_gather_perf on all %" //
                                       G_GUINT64_FORMAT " GPUs gives it",
                                       d->t.gpus_per_node));
}

bool
lh_tool_keeps_tree(const LhToolDraft *d)
{
    const LhPcieTree *tree = &d->t.tree, *before = &d->params->base->tree;
    bool same = (tree->memory_from.source == NULL) == (before->memory_from.source == NULL) &&
                tree->rates.reach == before->rates.reach &&
                (tree->memory > 0) == (before->memory > 0) &&
                (tree->per_gpu > 0) == (before->per_gpu > 0) && tree->p2p_two == before->p2p_two &&
                lh_pcie_levels_count(tree) == lh_pcie_levels_count(before);

    for (uint32_t i = 0; same && i < lh_pcie_levels_count(tree); i++)
        same = strcmp(tree->rates.names[i], before->rates.names[i]) == 0 &&
               (tree->rates.up[i] > 0) == (before->rates.up[i] > 0) &&
               (tree->rates.latency_ps[i] > 0) == (before->rates.latency_ps[i] > 0);
    return same;
}

bool
lh_tool_fill_pcie(LhToolDraft *d, GError **error)
{
    static const LhToolLinkText text = {
        "node.pcie",
        "node.pcie.bandwidth",
        "node.pcie.latency",
        "NCCL's topology XML gives it, as does sendrecv_perf on one host whose GPUs are not all "
        "joined by NVLink",
        "sendrecv_perf -b 8 gives it on one host whose GPUs are not all joined by NVLink",
        LH_TOOL_OTHER_CTAS,
        LH_TOOL_PCIE_LATENCY_S,
    };
    const LhTopology *base = d->params->base;
    const bool known = base != NULL && base->pcie.bandwidth > 0, joined = lh_tool_is_joined(d);
    g_autoptr(GArray) runs = lh_tool_runs(d);
    const char *from = joined ? NULL : fill_tree_of_node(d);
    const LhToolFound rate = find_own_rate(d, runs);
    LhToolFound latency = lh_tool_take_sends(d, true, false);

    /* No GPU traffic crosses PCIe, or the base's NICs are attached to NVLink. */
    if (joined && (!lh_tool_has_nics(d) || (base != NULL && rate.source == NULL && !known)))
        return true;
    /* Only routes between nodes cross PCIe, and their latency is measured as a whole. */
    if (latency.source == NULL && !known && joined)
        latency = (LhToolFound){ 0, LH_PROVENANCE_MEASURED, "part of the latency of the NICs",
                                 "part of the latency of the NICs" };
    if (!lh_tool_fill_link(d, &d->t.pcie, known ? &base->pcie : NULL, &text,
                           (LhToolFoundLink){ rate, latency }, error))
        return false;
    if (joined)
        return true;
    if (d->t.tree.rates.reach != LH_PCIE_NODE)
        fit_memory(d, runs);
    fit_levels(d, runs);
    note_tree(d, from);
    if (has_told_tree(d)) {
        remark_constants(d);
        remark_unknown(d);
    }
    return true;
}
