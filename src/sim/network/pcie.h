/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCIe of a node as a tree: GPUs hang on switches, switches on sockets; each of these groups has a
 * link outwards that its GPUs share. Messages whose ends do not reach each other directly go
 * through memory. A GPU's own link is a link class of the topology (topology.h); this is the rest.
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

/* How far GPUs reach each other directly. */
typedef enum {
    LH_PCIE_NODE,        /* all of a node */
    LH_PCIE_NONE,        /* none do */
    LH_PCIE_FIRST_LEVEL, /* within a group of that level; and so on, a level each */
} LhPcieReach;

/* What of a tree takes time, by level where there are several: all that messages are played by but
 * who is in which group, so that it can be changed without the file's arrays. */
typedef struct {
    double up[LH_PCIE_LEVELS_MAX];         /* bytes/s of a group's link outwards, each direction; 0:
                                              never the limit; nocheck:unit: named as in the file */
    LhTime latency_ps[LH_PCIE_LEVELS_MAX]; /* once, where a message crosses the level */
    /* Bytes/s: what each GPU reaches through memory, each way, and what all messages reach that go
     * through one memory; 0: never the limit. */
    double per_gpu, memory; /* nocheck:unit: named as in the file */
    uint64_t memory_gpus;   /* that share a memory, in a row; 0: all of the node */
    uint32_t reach;         /* LhPcieReach; farther messages go through memory */
    bool p2p_two;           /* two GPUs of a node that are alone in their communicator do, too */
    const char *names[LH_PCIE_LEVELS_MAX]; /* of levels; borrowed */
} LhPcieRates;

/* A level as a file has it. */
typedef struct {
    char *name;
    uint64_t gpus;  /* of a group, whose GPUs are in a row; 0: @of_gpu says which these are */
    GArray *of_gpu; /* of uint64_t: the group of each GPU, from 0; NULL: see @gpus */
    double up;      /* nocheck:unit: as in LhPcieRates, which holds */
    LhTime latency_ps;
    LhEvidence from;
} LhPcieLevel;

typedef struct {
    GArray *levels;         /* of LhPcieLevel, innermost first; NULL: none */
    char *p2p;              /* "none", the name of a level, "node"; NULL: "node" */
    bool p2p_two;           /* as in LhPcieRates, which holds */
    uint64_t memory_gpus;   /* as in LhPcieRates, which holds */
    double per_gpu, memory; /* nocheck:unit: as in LhPcieRates, which holds */
    LhEvidence memory_from;
    LhPcieRates rates;
} LhPcieTree;

/* Fields of a tree, as it is and as it was where something was measured. */
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

/* Rules that fields do not say, of a tree at "node.pcie" of a node of @gpus GPUs, and then
 * everything that follows from the fields. @joined: GPUs of the node never meet over PCIe. */
bool lh_pcie_tree_check(const LhJson *json, LhPcieTree *tree, uint64_t gpus, bool joined,
                        GError **error);

/* Rules of "host" at @path: of a way through memory of @gpus GPUs. */
bool lh_pcie_check_host(const LhJson *json, const char *path, const LhPcieRates *rates,
                        uint64_t gpus, GError **error);

/* "none", a level's name or "node" as a reach; false, and the error at @path, for another word. */
bool lh_pcie_read_p2p(const LhJson *json, const char *path, const LhPcieTree *tree,
                      const char *word, uint32_t *reach, GError **error);

/* The word of @rates' reach; borrowed. */
const char *lh_pcie_p2p_word(const LhPcieRates *rates);

/* What follows from the fields of a tree that is right. */
void lh_pcie_fill_rates(LhPcieTree *tree);

uint32_t lh_pcie_levels_count(const LhPcieTree *tree);

/* The group of @gpu of a node at @level, and how many groups there are of @gpus GPUs. */
uint32_t lh_pcie_group(const LhPcieTree *tree, uint32_t level, uint32_t gpu);
uint32_t lh_pcie_groups_count(const LhPcieTree *tree, uint32_t level, uint32_t gpus);

/* Whether GPUs of any group are not in a row. */
bool lh_pcie_is_crossed(const LhPcieTree *tree);

/* The innermost level that has both GPUs in one group; the number of levels if none has. */
uint32_t lh_pcie_common_level(const LhPcieTree *tree, uint32_t gpu, uint32_t other);

/* Whether two GPUs whose innermost common level is @common exchange through memory. */
bool lh_pcie_is_through_memory(const LhPcieRates *rates, uint32_t common);

/* The weakest of what is said of levels and memory; that of measured constants if nothing is. */
int lh_pcie_provenance(const LhPcieTree *tree);

/* All rates times @factor, to whole bytes per second, as a file has them. */
void lh_pcie_scale_rates(LhPcieRates *rates, double factor);
