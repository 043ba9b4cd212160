/* SPDX-License-Identifier: Apache-2.0 */
/* Left out: links above the memory of a socket, and PCIe between a GPU and the NIC
 * that is nearest to it beyond the GPU's own link. */
#include "sim/network/pcie.h"

#include "base/error.h"
#include "sim/network/topology_change.h"

#include <math.h>
#include <string.h>

#define NAME_LENGTH_MAX 40
#define P2P_NONE "none"
#define P2P_NODE "node"

#define TREE_GPUS(key, place, what, text)                                                          \
    {                                                                                              \
        .name = (key), .type = (what), .offset = (place), .min = 1, .max = LH_NICS_MAX,            \
        .description = (text)                                                                      \
    }

const LhField lh_pcie_level_fields[] = {
    { .name = "name",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhPcieLevel, name),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = NAME_LENGTH_MAX,
      .description = "Name of the level's groups, such as \"switch\" or \"socket\": letters, "
                     "digits, - and _." },
    TREE_GPUS("gpus", offsetof(LhPcieLevel, gpus), LH_FIELD_UINT,
              "GPUs per group, if consecutive; divides the GPUs of the node."),
    TREE_GPUS("of_gpu", offsetof(LhPcieLevel, of_gpu), LH_FIELD_UINTS,
              "The group of each GPU, from 0, if the GPUs of a group are not consecutive."),
    LH_PCIE_RATE("up", LhPcieLevel, up,
                 "Bandwidth of a group's uplink in each direction; never the limit if absent."),
    LH_PCIE_LATENCY(
        LhPcieLevel,
        "Latency that the level adds to a message from one group to another; 0 if absent."),
    LH_FIELDS_EVIDENCE(LhPcieLevel, from, 0, LH_TOPOLOGY_TEXT_MAX, "its numbers",
                       "its numbers come"),
    { .name = NULL },
};

void
lh_pcie_level_init(void *level)
{
    ((LhPcieLevel *)level)->from.provenance = -1;
}

const LhField lh_pcie_host_fields[] = {
    LH_PCIE_RATE(
        "per_gpu", LhPcieTree, per_gpu,
        "Bandwidth of each GPU through memory in each direction; its own link's rate if absent."),
    LH_PCIE_RATE("bandwidth", LhPcieTree, memory,
                 "Bandwidth of all messages through one memory together, each counted once: as "
                 "measured, not the sum of its DIMMs. Never the limit if absent."),
    TREE_GPUS("gpus", offsetof(LhPcieTree, memory_gpus), LH_FIELD_UINT,
              "Number of consecutive GPUs that share one memory, which their messages go through; "
              "all of the node if absent."),
    LH_FIELDS_EVIDENCE(LhPcieTree, memory_from, LH_FIELD_REQUIRED, LH_TOPOLOGY_TEXT_MAX,
                       "the rates", "the rates come"),
    { .name = NULL },
};

uint32_t
lh_pcie_levels_count(const LhPcieTree *tree)
{
    return tree->levels == NULL ? 0 : tree->levels->len;
}

static const LhPcieLevel *
level_at(const LhPcieTree *tree, uint32_t level)
{
    return &g_array_index(tree->levels, LhPcieLevel, level);
}

uint32_t
lh_pcie_group(const LhPcieTree *tree, uint32_t level, uint32_t gpu)
{
    const LhPcieLevel *l = level_at(tree, level);

    return l->of_gpu == NULL ? gpu / (uint32_t)l->gpus
                             : (uint32_t)g_array_index(l->of_gpu, uint64_t, gpu);
}

uint32_t
lh_pcie_groups_count(const LhPcieTree *tree, uint32_t level, uint32_t gpus)
{
    uint32_t count = 0;

    for (uint32_t gpu = 0; gpu < gpus; gpu++)
        count = MAX(count, lh_pcie_group(tree, level, gpu) + 1);
    return count;
}

bool
lh_pcie_is_crossed(const LhPcieTree *tree)
{
    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        if (level_at(tree, i)->of_gpu != NULL)
            return true;
    }
    return false;
}

uint32_t
lh_pcie_common_level(const LhPcieTree *tree, uint32_t gpu, uint32_t other)
{
    const uint32_t count = lh_pcie_levels_count(tree);
    uint32_t level = 0;

    while (level < count && lh_pcie_group(tree, level, gpu) != lh_pcie_group(tree, level, other))
        level++;
    return level;
}

bool
lh_pcie_is_through_memory(const LhPcieRates *rates, uint32_t common)
{
    return rates->reach != LH_PCIE_NODE && common + LH_PCIE_FIRST_LEVEL > rates->reach;
}

int
lh_pcie_provenance(const LhPcieTree *tree)
{
    int weakest = LH_PROVENANCE_MEASURED;

    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        if (tree->rates.up[i] > 0 || tree->rates.latency_ps[i] > 0)
            weakest = MAX(weakest, level_at(tree, i)->from.provenance);
    }
    return tree->memory_from.source == NULL ? weakest : MAX(weakest, tree->memory_from.provenance);
}

void
lh_pcie_scale_rates(LhPcieRates *rates, double factor)
{
    for (uint32_t i = 0; i < LH_PCIE_LEVELS_MAX; i++)
        rates->up[i] = round(rates->up[i] * factor);
    rates->per_gpu = round(rates->per_gpu * factor);
    rates->memory = round(rates->memory * factor);
}

/* ---- rules ---- */

static char *
path_in(uint32_t level, const char *field)
{
    return g_strdup_printf("node.pcie.levels[%u]%s%s", level, field[0] == '\0' ? "" : ".", field);
}

/* Names appear in tables and in names of links. */
static bool
check_name(const LhJson *json, const LhPcieTree *tree, uint32_t level, GError **error)
{
    const char *name = level_at(tree, level)->name;
    g_autofree char *path = path_in(level, "name");

    for (const char *c = name; *c != '\0'; c++) {
        if (!g_ascii_isalnum(*c) && *c != '-' && *c != '_')
            return lh_json_error(json, path, error,
                                 "\"%s\" is \"%s\"; allowed: letters, digits, - and _", path, name);
    }
    if (strcmp(name, P2P_NONE) == 0 || strcmp(name, P2P_NODE) == 0)
        return lh_json_error(json, path, error,
                             "\"%s\" is \"%s\", which is a reserved value of \"node.pcie.p2p\"",
                             path, name);
    for (uint32_t i = 0; i < level; i++) {
        if (strcmp(name, level_at(tree, i)->name) == 0)
            return lh_json_error(
                json, path, error,
                "\"%s\" is \"%s\", the name of level %u; allowed: a name of its own", path, name,
                i);
    }
    return true;
}

static bool
check_row(const LhJson *json, const LhPcieLevel *level, const char *path, uint64_t gpus,
          GError **error)
{
    g_autofree char *divisors = NULL;

    if (level->gpus < gpus && gpus % level->gpus == 0)
        return true;
    divisors = lh_topology_divisors(gpus);
    *strrchr(divisors, ',') = '\0'; /* a group of all GPUs has no outside */
    return lh_json_error(json, path, error,
                         "\"%s\" is %" G_GUINT64_FORMAT " of the %" G_GUINT64_FORMAT
                         " GPUs of a node; allowed: %s, or \"of_gpu\"",
                         path, level->gpus, gpus, divisors);
}

/* Checks that groups are numbered from 0 and each has a GPU. */
static bool
check_of_gpu(const LhJson *json, const LhPcieLevel *level, const char *path, uint64_t gpus,
             GError **error)
{
    g_autofree bool *is_used = g_new0(bool, gpus);
    uint64_t last = 0;

    if (level->of_gpu->len != gpus)
        return lh_json_error(
            json, path, error,
            "\"%s\" has %u numbers; allowed: one for each of the %" G_GUINT64_FORMAT
            " GPUs of a node",
            path, level->of_gpu->len, gpus);
    for (guint i = 0; i < gpus; i++) {
        const uint64_t group = g_array_index(level->of_gpu, uint64_t, i);

        if (group >= gpus)
            return lh_json_error(json, path, error,
                                 "\"%s\": GPU %u is of group %" G_GUINT64_FORMAT
                                 "; allowed: 0 to %" G_GUINT64_FORMAT,
                                 path, i, group, gpus - 1);
        is_used[group] = true;
        last = MAX(last, group);
    }
    if (last == 0)
        return lh_json_error(json, path, error,
                             "\"%s\" has all GPUs in one group; allowed: two groups or more", path);
    for (uint64_t group = 0; group < last; group++) {
        if (!is_used[group])
            return lh_json_error(json, path, error,
                                 "\"%s\": no GPU is of group %" G_GUINT64_FORMAT
                                 ", and some are of group %" G_GUINT64_FORMAT
                                 "; allowed: groups numbered from 0 without gaps",
                                 path, group, last);
    }
    return true;
}

static bool
check_members(const LhJson *json, const LhPcieTree *tree, uint32_t level, uint64_t gpus,
              GError **error)
{
    const LhPcieLevel *l = level_at(tree, level);
    g_autofree char *path = path_in(level, "");
    g_autofree char *in_row = path_in(level, "gpus"), *by_gpu = path_in(level, "of_gpu");

    if ((l->gpus > 0) == (l->of_gpu != NULL))
        return lh_json_error(
            json, path, error,
            "\"%s\" has %s; allowed: \"gpus\", for groups of consecutive GPUs, or \"of_gpu\"", path,
            l->gpus > 0 ? "\"gpus\" and \"of_gpu\"" : "no \"gpus\" or \"of_gpu\"");
    return l->gpus > 0 ? check_row(json, l, in_row, gpus, error)
                       : check_of_gpu(json, l, by_gpu, gpus, error);
}

/* Checks that each group of the level below lies within one group, and that some group is larger
 * than those below. */
static bool
check_nested(const LhJson *json, const LhPcieTree *tree, uint32_t level, uint64_t gpus,
             GError **error)
{
    g_autofree char *path = path_in(level, "");
    g_autofree uint32_t *outer = g_new0(uint32_t, gpus), *first = g_new(uint32_t, gpus);
    const uint32_t below = lh_pcie_groups_count(tree, level - 1, (uint32_t)gpus);

    memset(first, 0xff, gpus * sizeof(*first));
    for (uint32_t gpu = 0; gpu < gpus; gpu++) {
        const uint32_t inner = lh_pcie_group(tree, level - 1, gpu);
        const uint32_t group = lh_pcie_group(tree, level, gpu);

        g_assert(inner < gpus);
        if (first[inner] == UINT32_MAX) {
            first[inner] = gpu;
            outer[inner] = group;
        }
        if (outer[inner] != group)
            return lh_json_error(
                json, path, error,
                "\"%s\": GPUs %u and %u are in one %s but in two groups of %s; allowed: levels "
                "from the inside out, each made of whole groups of the one before",
                path, first[inner], gpu, level_at(tree, level - 1)->name,
                level_at(tree, level)->name);
    }
    return lh_pcie_groups_count(tree, level, (uint32_t)gpus) < below ||
           lh_json_error(json, path, error,
                         "\"%s\" has the same groups as %s; allowed: levels from the inside out, "
                         "each with larger groups than the one before",
                         path, level_at(tree, level - 1)->name);
}

/* Checks that levels with numbers state their source, and no others do. */
static bool
check_sources(const LhJson *json, uint32_t level, GError **error)
{
    static const char *const fields[] = { "provenance", "source" };
    g_autofree char *path = path_in(level, ""), *up = path_in(level, "up");
    g_autofree char *latency = path_in(level, "latency");
    const bool has_numbers = lh_json_has(json, up) || lh_json_has(json, latency);

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        g_autofree char *field = path_in(level, fields[i]);

        if (lh_json_has(json, field) == has_numbers)
            continue;
        if (has_numbers)
            return lh_json_error(json, path, error, "missing field \"%s\" in \"%s\"", fields[i],
                                 path);
        return lh_json_error(json, field, error,
                             "\"%s\" has no meaning without \"up\" or \"latency\"", field);
    }
    return true;
}

static bool
check_levels(const LhJson *json, const LhPcieTree *tree, uint64_t gpus, GError **error)
{
    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        if (!check_name(json, tree, i, error) || !check_members(json, tree, i, gpus, error) ||
            (i > 0 && !check_nested(json, tree, i, gpus, error)) || !check_sources(json, i, error))
            return false;
    }
    return true;
}

/* "none, switch, socket, node"; caller frees. */
static char *
allowed_p2p(const LhPcieTree *tree)
{
    GString *text = g_string_new(P2P_NONE ", ");

    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++)
        g_string_append_printf(text, "%s, ", level_at(tree, i)->name);
    g_string_append(text, P2P_NODE);
    return g_string_free(text, FALSE);
}

static bool
find_reach(const LhPcieTree *tree, const char *word, uint32_t *reach)
{
    *reach = strcmp(word, P2P_NODE) == 0 ? LH_PCIE_NODE : LH_PCIE_NONE;
    if (*reach == LH_PCIE_NODE || strcmp(word, P2P_NONE) == 0)
        return true;
    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        *reach = LH_PCIE_FIRST_LEVEL + i;
        if (strcmp(word, level_at(tree, i)->name) == 0)
            return true;
    }
    return false;
}

bool
lh_pcie_read_p2p(const LhJson *json, const char *path, const LhPcieTree *tree, const char *word,
                 uint32_t *reach, GError **error)
{
    g_autofree char *allowed = NULL;

    if (find_reach(tree, word, reach))
        return true;
    allowed = allowed_p2p(tree);
    return lh_json_error(json, path, error, "\"%s\" is \"%s\"; allowed: %s", path, word, allowed);
}

const char *
lh_pcie_p2p_word(const LhPcieRates *rates)
{
    return rates->reach == LH_PCIE_NODE   ? P2P_NODE
           : rates->reach == LH_PCIE_NONE ? P2P_NONE
                                          : rates->names[rates->reach - LH_PCIE_FIRST_LEVEL];
}

bool
lh_pcie_check_host(const LhJson *json, const char *path, const LhPcieRates *rates, uint64_t gpus,
                   GError **error)
{
    g_autofree char *divisors = lh_topology_divisors(gpus);
    g_autofree char *place = g_strconcat(path, ".gpus", NULL);

    if (!lh_json_has(json, path))
        return true;
    if (rates->per_gpu == 0 && rates->memory == 0)
        return lh_json_error(json, path, error,
                             "\"%s\" has no rate; allowed: \"per_gpu\", \"bandwidth\", or both",
                             path);
    if (rates->memory_gpus > 0 && rates->memory == 0)
        return lh_json_error(json, place, error,
                             "\"%s\" has no meaning without \"bandwidth\", which these GPUs share",
                             place);
    return rates->memory_gpus == 0 || gpus % rates->memory_gpus == 0 ||
           lh_json_error(json, place, error,
                         "\"%s\" is %" G_GUINT64_FORMAT
                         ", which does not divide \"node.gpus\" %" G_GUINT64_FORMAT "; allowed: %s",
                         place, rates->memory_gpus, gpus, divisors);
}

/* Rejects fields that would have no effect. */
static bool
check_meaning(const LhJson *json, const LhPcieTree *tree, bool joined, GError **error)
{
    static const char *const fields[] = { "levels", "p2p", "p2p_two", "host" };

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        g_autofree char *path = g_strconcat("node.pcie.", fields[i], NULL);

        if (!lh_json_has(json, path))
            continue;
        if (joined)
            return lh_json_error(
                json, path, error,
                "\"%s\" has no meaning: the GPUs of a node do not communicate over PCIe", path);
        if (tree->rates.reach == LH_PCIE_NODE && i >= 2)
            return lh_json_error(json, path, error,
                                 "\"%s\" has no meaning where all GPUs reach each other directly "
                                 "(\"node.pcie.p2p\")",
                                 path);
    }
    return true;
}

void
lh_pcie_fill_rates(LhPcieTree *tree)
{
    LhPcieRates *rates = &tree->rates;

    for (uint32_t i = 0; i < lh_pcie_levels_count(tree); i++) {
        rates->names[i] = level_at(tree, i)->name;
        rates->up[i] = level_at(tree, i)->up;
        rates->latency_ps[i] = level_at(tree, i)->latency_ps;
    }
    rates->p2p_two = tree->p2p_two;
    rates->per_gpu = tree->per_gpu;
    rates->memory = tree->memory;
    rates->memory_gpus = tree->memory_gpus;
    find_reach(tree, tree->p2p == NULL ? P2P_NODE : tree->p2p, &rates->reach);
}

bool
lh_pcie_tree_check(const LhJson *json, LhPcieTree *tree, uint64_t gpus, bool joined, GError **error)
{
    const char *p2p = tree->p2p == NULL ? P2P_NODE : tree->p2p;

    lh_pcie_fill_rates(tree);
    return lh_pcie_read_p2p(json, "node.pcie.p2p", tree, p2p, &tree->rates.reach, error) &&
           check_meaning(json, tree, joined, error) && check_levels(json, tree, gpus, error) &&
           lh_pcie_check_host(json, "node.pcie.host", &tree->rates, gpus, error);
}
