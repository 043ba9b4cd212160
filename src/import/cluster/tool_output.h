/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of what a cluster's tools print: nvidia-smi topo -m, NCCL's topology XML, nccl-tests,
 * perftest and Slurm's topology.conf. Each file adds its values; topology_from_tools.h makes a
 * topology file of all of them. Host names are compared while a file is read, and not kept.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"
#include "sim/network/topology.h"

/* Kinds of values, with their units. */
typedef enum {
    LH_TOOL_GPUS,           /* GPUs per node */
    LH_TOOL_HOSTS,          /* hosts per node, if several: an NVLink domain */
    LH_TOOL_SCALE_UP,       /* LhScaleUp */
    LH_TOOL_NVLINKS,        /* per GPU */
    LH_TOOL_CAPABILITY,     /* of the GPUs, 90 for sm_90 */
    LH_TOOL_PEER_RATE,      /* bytes/s of NCCL's sends between GPUs of a node */
    LH_TOOL_PEER_LATENCY,   /* seconds, likewise */
    LH_TOOL_PCIE_RATE,      /* bytes/s between a GPU and its host */
    LH_TOOL_NICS,           /* NICs next to the GPUs of a node; several of one GPU count as one */
    LH_TOOL_NICS_JOINED,    /* NICs combined into each of these; mostly 1 */
    LH_TOOL_NIC_WIRE,       /* bytes/s, wire rate of one NIC */
    LH_TOOL_NIC_RATE,       /* bytes/s, measured on one NIC */
    LH_TOOL_NIC_LATENCY,    /* seconds, from memory to memory */
    LH_TOOL_ROUTE_RATE,     /* bytes/s of NCCL's sends between GPUs of two nodes */
    LH_TOOL_ROUTE_LATENCY,  /* seconds, likewise */
    LH_TOOL_RINGS_RATE,     /* bytes/s of collectives over several nodes, at one node */
    LH_TOOL_NODES,          /* in the cluster */
    LH_TOOL_NODES_PER_LEAF, /* of the largest leaf switch */
    LH_TOOL_KINDS
} LhToolKind;

typedef struct {
    bool known;
    double value;    /* nocheck:unit: of its kind */
    uint32_t weight; /* precedence by the way it was found; the highest wins */
    uint64_t ranks;  /* ranks per node if measured with NCCL; else 0 */
    LhProvenance provenance;
    char *source; /* "ib_write_bw (nic.txt)" */
    char *place;  /* "nic.txt:12" */
} LhToolOutput;

typedef struct {
    LhToolKind kind;
    char *source; /* see LhToolOutput */
} LhToolSaid;

/* Groups of GPUs of a node; the GPUs of a group share one PCIe link. */
typedef struct {
    const char *name; /* "switch", "socket"; static */
    GArray *of_gpu;   /* of uint64_t: group of each GPU, numbered in order of GPUs */
    double up;        /* bytes/s of the slowest such link; nocheck:unit: as in files; 0: unknown */
    char *source;     /* source of the rate; NULL */
} LhToolLevel;

/* PCIe of a node, from one file. */
typedef struct {
    guint gpus; /* 0: no file has it */
    uint32_t weight;
    bool complete;    /* includes pairs of GPUs that NVLink joins */
    GArray *levels;   /* of LhToolLevel, innermost first */
    const char *p2p;  /* value in a topology file, by NCCL's rules; static */
    bool p2p_two;     /* two GPUs alone communicate directly at any distance */
    double by_memory; /* nocheck:unit: share of its own link that a GPU reaches through memory */
    char *asks;       /* what to give for links of unknown bandwidth; NULL: nothing */
    char *source, *place;
} LhToolTree;

typedef struct {
    LhToolOutput told[LH_TOOL_KINDS];
    LhToolTree tree;
    GArray *nic_of_gpu; /* of uint64_t: NIC of each GPU, among the NICs that count; NULL: unknown */
    GPtrArray *notes;   /* of char *: what the readers left out, one line each */
    GArray *times;      /* of LhCollectiveTimes, between GPUs of one node */
    GPtrArray *places;  /* of char *, one for each row of @times */
    GPtrArray *sources; /* of char *: files read, "nvidia-smi topo -m (topo.txt)" */
    /* The last two are errors of a topology that uses these values, "nccl.xml:7:9: error: ...";
     * NULL: none. */
    GArray *said;       /* of LhToolSaid: every value of every file, used or not */
    char *lost_nvlinks; /* NVLinks whose other end no file has */
    char *unlike_nics;  /* NICs of different speeds */
} LhToolCluster;

LhToolCluster *lh_tool_new(void);
void lh_tool_free(LhToolCluster *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhToolCluster, lh_tool_free)

/*
 * Reads the output of one tool, recognised by its content, and adds its values. LH_ERROR_INPUT with
 * file and line if it is of no known tool, is invalid, or contradicts earlier files.
 */
bool lh_tool_load(LhToolCluster *cluster, const char *path, GError **error);
bool lh_tool_parse(LhToolCluster *cluster, const char *file, const char *text, gsize length,
                   GError **error);
