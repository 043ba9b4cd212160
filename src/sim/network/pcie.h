/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCIe tree of a node: GPUs are attached to switches, switches to sockets. Each of these groups
 * has an uplink that its GPUs share. Messages between GPUs that do not reach each other directly go
 * through host memory. A GPU's own link is a link class of the topology (topology.h); this is the
 * rest.
 */
#pragma once

#include "base/json/json.h"
#include "base/units.h"
#include "sim/cost/provenance.h"

/* Limits of topology files. */
#define LH_TOPOLOGY_TEXT_MAX 1000
#define LH_BANDWIDTH_MIN 1.0
#define LH_BANDWIDTH_MAX 1e15
#define LH_LATENCY_MAX_S 1.0

#define LH_PCIE_LEVELS_MAX 4

/* Peer-to-peer reach: how far GPUs reach each other directly. */
typedef enum {
    LH_PCIE_NODE,        /* all of a node */
    LH_PCIE_NONE,        /* none do */
    LH_PCIE_FIRST_LEVEL, /* within a group of the first level; further levels follow */
} LhPcieReach;

/* The speeds of a tree, per level where there are several: everything that simulation needs except
 * the membership of groups, so that it can be changed without the file's arrays. */
typedef struct {
    double up[LH_PCIE_LEVELS_MAX]; /* bytes/s of a group's uplink in each direction; 0: never the
                                      limit; nocheck:unit: named as in the file */
    LhTime latency_ps[LH_PCIE_LEVELS_MAX]; /* added once where a message crosses the level */
    /* Bandwidth through memory, bytes/s: of each GPU in each direction, and of all messages through
     * one memory; 0: never the limit. */
    double per_gpu, memory; /* nocheck:unit: named as in the file */
    uint64_t memory_gpus;   /* number of consecutive GPUs per memory; 0: all of the node */
    uint32_t reach;         /* LhPcieReach; farther messages go through memory */
    bool p2p_two; /* two GPUs of a node that are alone in their communicator reach each other
                     directly, too */
    const char *names[LH_PCIE_LEVELS_MAX]; /* of levels; borrowed */
} LhPcieRates;

/* A level as in the file. */
typedef struct {
    char *name;
    uint64_t gpus;  /* number of consecutive GPUs per group; 0: see @of_gpu */
    GArray *of_gpu; /* of uint64_t: the group of each GPU, from 0; NULL: see @gpus */
    double up;      /* nocheck:unit: as in LhPcieRates, which is authoritative */
    LhTime latency_ps;
    LhEvidence from;
} LhPcieLevel;

typedef struct {
    GArray *levels;         /* of LhPcieLevel, innermost first; NULL: none */
    char *p2p;              /* "none", the name of a level, "node"; NULL: "node" */
    bool p2p_two;           /* as in LhPcieRates, which is authoritative */
    uint64_t memory_gpus;   /* as in LhPcieRates, which is authoritative */
    double per_gpu, memory; /* nocheck:unit: as in LhPcieRates, which is authoritative */
    LhEvidence memory_from;
    LhPcieRates rates;
} LhPcieTree;

/* Rows of fields of a tree, both of the node itself and of the node that was measured on. */
#define LH_PCIE_RATE(key, owner, member, text)                                                     \
    {                                                                                              \
        .name = (key), .type = LH_FIELD_UNIT, .unit = LH_UNIT_BANDWIDTH,                           \
        .offset = offsetof(owner, member), .min = LH_BANDWIDTH_MIN, .max = LH_BANDWIDTH_MAX,       \
        .description = (text)                                                                      \
    }
#define LH_PCIE_LATENCY(owner, text)                                                               \
    {                                                                                              \
        .name = "latency", .type = LH_FIELD_UNIT, .unit = LH_UNIT_TIME,                            \
        .offset = offsetof(owner, latency_ps), .min = 0, .max = LH_LATENCY_MAX_S,                  \
        .description = (text)                                                                      \
    }

extern const LhField lh_pcie_level_fields[]; /* of an LhPcieLevel */
void lh_pcie_level_init(void *level);
extern const LhField lh_pcie_host_fields[]; /* of an LhPcieTree */

/* Checks the rules that go beyond single fields, for a tree at "node.pcie" of a node of @gpus GPUs,
 * then derives everything else. @joined: GPUs of the node never communicate over PCIe. */
bool lh_pcie_tree_check(const LhJson *json, LhPcieTree *tree, uint64_t gpus, bool joined,
                        GError **error);

/* Checks the rules of "host" at @path: transfers of @gpus GPUs through memory. */
bool lh_pcie_check_host(const LhJson *json, const char *path, const LhPcieRates *rates,
                        uint64_t gpus, GError **error);

/* Reads @word ("none", a level's name or "node") as a reach; false with the error at @path for any
 * other word. */
bool lh_pcie_read_p2p(const LhJson *json, const char *path, const LhPcieTree *tree,
                      const char *word, uint32_t *reach, GError **error);

/* The word for the reach in @rates; borrowed. */
const char *lh_pcie_p2p_word(const LhPcieRates *rates);

/* Derives the rates of a valid tree. */
void lh_pcie_fill_rates(LhPcieTree *tree);

uint32_t lh_pcie_levels_count(const LhPcieTree *tree);

/* The group of @gpu of a node at @level; the number of groups of @gpus GPUs. */
uint32_t lh_pcie_group(const LhPcieTree *tree, uint32_t level, uint32_t gpu);
uint32_t lh_pcie_groups_count(const LhPcieTree *tree, uint32_t level, uint32_t gpus);

/* Whether the GPUs of some group are not consecutive. */
bool lh_pcie_is_crossed(const LhPcieTree *tree);

/* The innermost level that has both GPUs in one group; the number of levels if none has. */
uint32_t lh_pcie_common_level(const LhPcieTree *tree, uint32_t gpu, uint32_t other);

/* Whether two GPUs whose innermost common level is @common exchange through memory. */
bool lh_pcie_is_through_memory(const LhPcieRates *rates, uint32_t common);

/* The weakest provenance of levels and memory; LH_PROVENANCE_MEASURED if there are none. */
int lh_pcie_provenance(const LhPcieTree *tree);

/* Multiplies all rates by @factor, rounded to whole bytes per second, as in a file. */
void lh_pcie_scale_rates(LhPcieRates *rates, double factor);
