/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tools of a cluster print about it: nvidia-smi topo -m, NCCL's topology XML, nccl-tests,
 * perftest and Slurm's topology.conf. Each file adds what it says; topology_from_tools.h makes a
 * topology file of all of it. Names of hosts are compared while a file is read, and not kept.
 */
#pragma once

#include "sim/network/collectives/collective_table.h"
#include "sim/network/topology.h"

/* What can be told, and the unit of its value. */
typedef enum {
    LH_TOOL_GPUS,           /* of a node */
    LH_TOOL_HOSTS,          /* of a node, if several: an NVLink domain */
    LH_TOOL_SCALE_UP,       /* LhScaleUp */
    LH_TOOL_NVLINKS,        /* of a GPU */
    LH_TOOL_CAPABILITY,     /* of the GPU, 90 for sm_90 */
    LH_TOOL_PEER_RATE,      /* bytes/s that NCCL's sends reach between GPUs of a node */
    LH_TOOL_PEER_LATENCY,   /* seconds, likewise */
    LH_TOOL_PCIE_RATE,      /* bytes/s of a GPU's way to its host */
    LH_TOOL_NICS,           /* next to the GPUs of a node; those of one GPU as one */
    LH_TOOL_NICS_JOINED,    /* in each of these; mostly 1 */
    LH_TOOL_NIC_WIRE,       /* bytes/s, of the wire of one */
    LH_TOOL_NIC_RATE,       /* bytes/s that one reaches */
    LH_TOOL_NIC_LATENCY,    /* seconds, from memory to memory */
    LH_TOOL_ROUTE_RATE,     /* bytes/s that NCCL's sends reach between GPUs of two nodes */
    LH_TOOL_ROUTE_LATENCY,  /* seconds, likewise */
    LH_TOOL_RINGS_RATE,     /* bytes/s of collectives of several nodes, at one node */
    LH_TOOL_NODES,          /* of the cluster */
    LH_TOOL_NODES_PER_LEAF, /* at the largest leaf switch */
    LH_TOOL_KINDS
} LhToolKind;

typedef struct {
    bool known;
    double value;    /* nocheck:unit: of its kind */
    uint32_t weight; /* of the way in which it was found; the heavier one holds */
    uint64_t ranks;  /* measured with NCCL: of a node; else 0 */
    LhProvenance provenance;
    char *source; /* "ib_write_bw (nic.txt)" */
    char *place;  /* "nic.txt:12" */
} LhToolOutput;

typedef struct {
    LhToolKind kind;
    char *source; /* as of LhToolOutput */
} LhToolSaid;

/* Groups of GPUs of a node, each behind one PCIe link that its GPUs share. */
typedef struct {
    const char *name; /* "switch", "socket"; static */
    GArray *of_gpu;   /* of uint64_t: the group of each GPU, numbered as GPUs come */
    double up;        /* bytes/s of the slowest such link; nocheck:unit: as in files; 0: not said */
    char *source;     /* what says so; NULL */
} LhToolLevel;

/* PCIe of a node as one file has it. */
typedef struct {
    guint gpus; /* 0: no file tells */
    uint32_t weight;
    bool complete;    /* whether it tells of every two GPUs, also of those that NVLink joins */
    GArray *levels;   /* of LhToolLevel, innermost first */
    const char *p2p;  /* as in a topology file, and as NCCL goes about it; static */
    bool p2p_two;     /* two GPUs that are alone reach each other, however far they are */
    double by_memory; /* of its own link, what a GPU reaches through memory; nocheck:unit: a share
                       */
    char *asks;       /* what to give for what it does not tell of a link; NULL: nothing */
    char *source, *place;
} LhToolTree;

typedef struct {
    LhToolOutput told[LH_TOOL_KINDS];
    LhToolTree tree;
    GArray *nic_of_gpu; /* of uint64_t: of NICs that count, the one of each GPU; NULL: not told */
    GPtrArray *notes;   /* of char *: what readers of files left out, a line each */
    GArray *times;      /* of LhCollectiveTimes, of GPUs of one node */
    GPtrArray *places;  /* of char *, for each of these */
    GPtrArray *sources; /* of char *: what was read, "nvidia-smi topo -m (topo.txt)" */
    /* What is wrong with a topology that takes these from the files, "nccl.xml:7:9: error: ...";
     * NULL: nothing. */
    GArray *said;       /* of LhToolSaid: every value of every file, whether or not it holds */
    char *lost_nvlinks; /* no file says where they lead */
    char *unlike_nics;  /* not all are of one speed */
} LhToolCluster;

LhToolCluster *lh_tool_new(void);
void lh_tool_free(LhToolCluster *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhToolCluster, lh_tool_free)

/*
 * Reads what one tool printed, which its content tells, and adds what it says. LH_ERROR_INPUT with
 * file and line if it is of no tool that is known, is broken, or contradicts what was told before.
 */
bool lh_tool_load(LhToolCluster *cluster, const char *path, GError **error);
bool lh_tool_parse(LhToolCluster *cluster, const char *file, const char *text, gsize length,
                   GError **error);
